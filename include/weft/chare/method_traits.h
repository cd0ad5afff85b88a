// The result and the parameters of a method, from its pointer's type. For entry.h and when.h; programs do not name this.
#pragma once

#include <tuple>
#include <type_traits>

#include "weft/chare/argument.h"

namespace weft::chare::entry_detail {

template <class Method>
struct MethodTraits;
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...)> {
  using Result = R;
  using Class = C;
  using Parameters = std::tuple<std::type_identity<Args>...>;
  using Arguments = std::tuple<argument_detail::Stored<Args>...>;
  static constexpr bool kTakesMutableReference = (argument_detail::kIsMutableReference<Args> || ...);
  static constexpr bool kTakesPointer =
      (argument_detail::kHoldsPointer<argument_detail::Stored<Args>> || ...);
};
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...) const> : MethodTraits<R (C::*)(Args...)> {};
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...) noexcept> : MethodTraits<R (C::*)(Args...)> {};
template <class R, class C, class... Args>
struct MethodTraits<R (C::*)(Args...) const noexcept> : MethodTraits<R (C::*)(Args...)> {};

}  // namespace weft::chare::entry_detail
