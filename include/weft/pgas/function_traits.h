// The parameters and the result of a function that other PEs call. For rpc.h; programs do not name this.
//
// A first parameter of type World& or const Team& is no argument of the call: it is this PE's world, or the team that the
// call was made on. A parameter DistObject<T>& is the object of the PE that runs the function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "weft/base/pup.h"
#include "weft/pgas/team_id.h"
#include "weft/runtime/registry.h"
#include "weft/runtime/task.h"

namespace weft::pgas {

class Team;
class World;
template <class T>
class DistObject;

namespace rpc_detail {

// Names a distributed object in a call.
struct ObjectNumber {
  TeamId team;
  std::uint64_t number = 0;
  std::uint64_t type = 0;  // see type_number()
};
// An argument of type DistObject<T>&.
template <class T>
struct ObjectArgument {
  ObjectNumber where;
  DistObject<T>* object = nullptr;  // on the PE that runs the function, when it was found

  ObjectArgument() = default;
  ObjectArgument(const DistObject<T>& given);  // in dist_object.h
  void pup(base::Pup& p) { p | where.team.leader_pe | where.team.number | where.number | where.type; }
};

// A number that names the type: it is the same on all PEs, and another type has another number.
template <class T>
std::uint64_t type_number() {
  static const std::uint64_t number = runtime::fingerprint(runtime::type_name<T>());
  return number;
}

template <class T>
inline constexpr bool kIsObjectArgument = false;
template <class T>
inline constexpr bool kIsObjectArgument<ObjectArgument<T>> = true;

template <class T>
inline constexpr bool kIsDistObject = false;
template <class T>
inline constexpr bool kIsDistObject<DistObject<T>> = true;

template <class Parameter>
struct StoredAs {
  using Type = std::decay_t<Parameter>;
};
template <class T>
struct StoredAs<DistObject<T>&> {
  using Type = ObjectArgument<T>;
};
template <class T>
struct StoredAs<const DistObject<T>&> {
  using Type = ObjectArgument<T>;
};
template <class Parameter>
using Stored = typename StoredAs<Parameter>::Type;

template <class Parameter>
inline constexpr bool kIsMutableReference =
    std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>> &&
    !kIsObjectArgument<Stored<Parameter>>;

template <class Parameter>
inline constexpr bool kIsContext =
    std::is_same_v<Parameter, World&> || std::is_same_v<Parameter, const Team&>;

// `Context`: void, World& or const Team&.
template <class R, class ContextParameter, class... Args>
struct Traits {
  using Result = R;
  using Context = ContextParameter;
  using Value = typename runtime::TaskValue<R>::Value;
  static constexpr bool kIsTask = runtime::TaskValue<R>::kIsTask;
  using Parameters = std::tuple<std::type_identity<Args>...>;
  using Arguments = std::tuple<Stored<Args>...>;
  static constexpr std::size_t kNumArguments = sizeof...(Args);
  static constexpr bool kTakesMutableReference = (kIsMutableReference<Args> || ...);
};

template <class R, class... Args>
struct TraitsOf : Traits<R, void, Args...> {};
template <class R, class First, class... Args>
  requires kIsContext<First>
struct TraitsOf<R, First, Args...> : Traits<R, First, Args...> {};

template <class Function>
struct FunctionTraits;
template <class R, class... Args>
struct FunctionTraits<R (*)(Args...)> : TraitsOf<R, Args...> {};
template <class R, class... Args>
struct FunctionTraits<R (*)(Args...) noexcept> : TraitsOf<R, Args...> {};
// A lambda without captures.
template <class Function>
  requires requires { &Function::operator(); } && std::is_empty_v<Function>
struct FunctionTraits<Function> : FunctionTraits<decltype(+Function())> {};

}  // namespace rpc_detail

// The type of the value that a call of the function gives its caller.
template <auto Function>
using RpcValue = typename rpc_detail::FunctionTraits<std::remove_const_t<decltype(Function)>>::Value;

}  // namespace weft::pgas
