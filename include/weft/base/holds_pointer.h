// kHoldsPointer<T>: whether a trivially copyable type holds an address, which means nothing on another PE.
//
// The compiler finds pointers, references and members of either in T, private ones too: std::bit_cast of such a
// type is no constant expression. The same is so of a union, and of a struct with a std::optional or std::variant,
// which are unions inside: they count as holding a pointer, and a pup function says that they do not. The compiler
// cannot look into types without a constexpr constructor, nor, before g++ 13, into arrays of structs; those count as
// free of pointers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <variant>

namespace weft::base {

namespace holds_pointer_detail {

template <class T>
concept IsBitCastInConstants = requires {
  typename std::bool_constant<(static_cast<void>(std::bit_cast<T>(std::array<unsigned char, sizeof(T)>{})),
                               true)>;
};

// A template, for the specialisations below.
template <class T>
struct HoldsPointer : std::bool_constant<__is_literal_type(T) && !IsBitCastInConstants<T>> {};
template <class T, std::size_t N>
struct HoldsPointer<T[N]> : HoldsPointer<T> {};
template <class T, std::size_t N>
struct HoldsPointer<std::array<T, N>> : HoldsPointer<T> {};
// Unions inside, of known types.
template <class T>
struct HoldsPointer<std::optional<T>> : HoldsPointer<T> {};
template <class... Ts>
struct HoldsPointer<std::variant<Ts...>> : std::disjunction<HoldsPointer<Ts>...> {};

}  // namespace holds_pointer_detail

// REQUIRES: T is trivially copyable.
template <class T>
inline constexpr bool kHoldsPointer = holds_pointer_detail::HoldsPointer<std::remove_cv_t<T>>::value;

}  // namespace weft::base
