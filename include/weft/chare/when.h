// Conditions of entry methods: a call runs when its condition holds, and waits in the chare until then.
//
//   struct Cell : weft::Chare<Cell> {
//     void ghost(int iteration, std::span<const double> values);
//     bool is_current(int iteration) const { return iteration == iteration_; }
//     using WhenConditions = weft::WhenConditions<weft::When<&Cell::ghost, &Cell::is_current>>;
//   };
//
// A condition is a const method that returns a bool. It takes the arguments of the entry method, or the first of them, by
// value, by const reference, or as a std::span or std::string_view. It reads the chare and the arguments, changes nothing,
// and does not wait.
//
// Or a condition is a data member: then a call waits until its first argument, of the same type, equals the member. Such calls are found
// by their value: however many wait, the others cost nothing. Of a method each waiting call is asked each time.
//
//   using WhenConditions = weft::WhenConditions<weft::When<&Cell::ghost, &Cell::iteration_>>;  // behind the member
//
// It is called when the call has arrived. If it does not hold, the call waits in the chare. After each entry method of the
// chare, and each time that a coroutine of it has been resumed, the waiting calls are asked in order of arrival. The first
// whose condition holds runs, and then they are asked again from the first on. A result or an exception goes to the caller
// as always. If a condition throws, the caller gets the exception, and the entry method does not run.
//
// Waiting calls move with their chare. They count as handled for quiescence and flow control. An entry method with a post
// entry method has no condition, because a call that waits would keep the memory that was chosen for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/chare/argument.h"
#include "weft/chare/method_traits.h"
#include "weft/chare/payload.h"

namespace weft::chare {

// Names the condition of an entry method.
template <auto EntryMethod, auto Condition>
struct When {};
// The list of them, a member type of the chare with this name.
template <class... Whens>
struct WhenConditions {};

namespace when_detail {

using payload_detail::Constant;

template <class T>
inline constexpr bool kHasConditions = requires { typename T::WhenConditions; };

// Constant<the condition of Method>, or void. kCount: how many are listed for it.
template <auto Method, class Whens>
struct FindCondition {
  using Found = void;
  static constexpr int kCount = 0;
};
template <auto Method, auto Entry, auto Condition, class... Rest>
struct FindCondition<Method, WhenConditions<When<Entry, Condition>, Rest...>> {
  using Others = FindCondition<Method, WhenConditions<Rest...>>;
  static constexpr bool kIsIt = std::is_same_v<Constant<Method>, Constant<Entry>>;
  using Found = std::conditional_t<kIsIt, Constant<Condition>, typename Others::Found>;
  static constexpr int kCount = Others::kCount + (kIsIt ? 1 : 0);
};

template <class T, auto Method>
struct ConditionOf {
  using Found = void;
  static constexpr int kCount = 0;
};
template <class T, auto Method>
  requires kHasConditions<T>
struct ConditionOf<T, Method> : FindCondition<Method, typename T::WhenConditions> {};

// Whether `First` are the types of the first of `All`.
template <class All, class First>
inline constexpr bool kIsPrefix = false;
template <class... All, class... First>
inline constexpr bool kIsPrefix<std::tuple<All...>, std::tuple<First...>> = [] {
  if constexpr (sizeof...(First) > sizeof...(All)) {
    return false;
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::is_same_v<std::tuple_element_t<I, std::tuple<All...>>,
                             std::tuple_element_t<I, std::tuple<First...>>> &&
              ...);
    }(std::index_sequence_for<First...>());
  }
}();

// Calls the condition with the first of the arguments, which it cannot change.
template <auto Condition, class T, class Arguments>
bool method_holds(const T& chare, const Arguments& arguments) {
  using Traits = entry_detail::MethodTraits<decltype(Condition)>;
  using Class = typename Traits::Class;
  static_assert(std::is_base_of_v<Class, T>, "this is not a method of the chare");
  static_assert(kIsPrefix<Arguments, typename Traits::Arguments>,
                "a condition takes the arguments of its entry method, or the first of them");
  return [&]<class... Parameters>(std::type_identity<std::tuple<std::type_identity<Parameters>...>>) {
    static_assert(std::is_invocable_v<decltype(Condition), const T&, Parameters...>,
                  "a condition is a const method: it reads the chare and changes nothing");
    static_assert(std::is_same_v<typename Traits::Result, bool>, "a condition returns a bool");
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] const auto argument = [&]<std::size_t Which, class Parameter>() -> decltype(auto) {
        const auto& value = std::get<Which>(arguments);
        if constexpr (argument_detail::kIsView<Parameter>) {
          return argument_detail::view_of<Parameter>(value);
        } else {
          return (value);
        }
      };
      return (chare.*Condition)(argument.template operator()<I, Parameters>()...);
    }(std::index_sequence_for<Parameters...>());
  }(std::type_identity<typename Traits::Parameters>());
}

// Whether the condition, a Constant or void for none, is a data member.
template <class Condition>
inline constexpr bool kIsMember = false;
template <auto Condition>
inline constexpr bool kIsMember<Constant<Condition>> = std::is_member_object_pointer_v<decltype(Condition)>;

// The member that the first argument is to equal.
template <auto Condition, class T, class Arguments>
const auto& member_of(const T& chare) {
  using Member = std::remove_cvref_t<decltype(chare.*Condition)>;
  if constexpr (std::tuple_size_v<Arguments> == 0) {
    static_assert(std::tuple_size_v<Arguments> != 0,
                  "a condition that is a data member needs an argument that is to equal it");
  } else {
    static_assert(std::is_same_v<std::tuple_element_t<0, Arguments>, Member>,
                  "a condition that is a data member has the type of the first argument, which is to equal "
                  "it");
  }
  return chare.*Condition;
}
// The hash of the member, and of the argument that is to equal it.
template <class Value>
std::uint64_t hash_of(const Value& value) {
  static_assert(std::is_default_constructible_v<std::hash<Value>>,
                "a condition that is a data member needs a std::hash of its type; write a method instead");
  return std::hash<Value>()(value);
}

// Whether the condition holds for a call with these arguments.
template <auto Condition, class T, class Arguments>
bool holds(const T& chare, const Arguments& arguments) {
  if constexpr (kIsMember<Constant<Condition>>) {
    return member_of<Condition, T, Arguments>(chare) == std::get<0>(arguments);
  } else {
    return method_holds<Condition>(chare, arguments);
  }
}

}  // namespace when_detail

}  // namespace weft::chare
