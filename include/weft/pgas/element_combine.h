// How the elements of a buffer are reduced. For team.h; programs do not name this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "weft/runtime/reduction.h"
#include "weft/runtime/registry.h"

namespace weft::pgas {

// `into[i] = into[i] op from[i]`. All ranks of a collective give the same `number`, which is checked.
struct ElementCombine {
  using Function = void (*)(runtime::Reducer reducer, std::byte* into, const std::byte* from,
                            std::size_t count);
  Function function = nullptr;
  std::size_t element_bytes = 0;
  std::uint64_t number = 0;
};

namespace combine_detail {

template <class T, class Merge>
void combine(std::byte* into, const std::byte* from, std::size_t count, Merge merge) {
  for (std::size_t i = 0; i < count; ++i, into += sizeof(T), from += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, into, sizeof a);
    std::memcpy(&b, from, sizeof b);
    a = merge(a, b);
    std::memcpy(into, &a, sizeof a);
  }
}

// A case for each reducer, so that the loop contains no choice.
template <class T>
void combine_numbers(runtime::Reducer reducer, std::byte* into, const std::byte* from, std::size_t count) {
  using runtime::Reducer;
  using runtime::reduction_detail::merge;
  switch (reducer) {
    case Reducer::kSum:
      return combine<T>(into, from, count, [](T a, T b) { return merge(Reducer::kSum, a, b); });
    case Reducer::kMin:
      return combine<T>(into, from, count, [](T a, T b) { return merge(Reducer::kMin, a, b); });
    case Reducer::kMax:
      return combine<T>(into, from, count, [](T a, T b) { return merge(Reducer::kMax, a, b); });
    default:
      return combine<T>(into, from, count, [reducer](T a, T b) { return merge(reducer, a, b); });
  }
}

template <class T, auto Merge>
void combine_custom(runtime::Reducer, std::byte* into, const std::byte* from, std::size_t count) {
  combine<T>(into, from, count, Merge);
}

}  // namespace combine_detail

// Merges numbers with the standard reducers.
template <class T>
ElementCombine number_combine() {
  static_assert(
      std::is_arithmetic_v<T>,
      "only numbers have sum, product, min, max and logical reducers; pass a function `T merge(T, T)` as "
      "allreduce_in_place<&merge>(values)");
  static const std::uint64_t number = runtime::fingerprint(runtime::type_name<T>());
  return {&combine_detail::combine_numbers<T>, sizeof(T), number};
}
// With a function of the program, `T Merge(T, T)`.
template <class T, auto Merge>
ElementCombine custom_combine() {
  static_assert(std::is_trivially_copyable_v<T>,
                "the elements of a buffer travel as bytes: give a trivially copyable type");
  static const std::uint64_t number =
      runtime::fingerprint(runtime::type_name<T>(), runtime::fingerprint(runtime::value_name<Merge>()));
  return {&combine_detail::combine_custom<T, Merge>, sizeof(T), number};
}

}  // namespace weft::pgas
