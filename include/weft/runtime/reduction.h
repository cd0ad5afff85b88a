// Reducers and combiners.
//
// A Combiner merges packed contributions. A template registers one for each type that a program reduces, so
// that every PE of the spanning tree can merge partial results.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/pup.h"
#include "weft/base/small_bytes.h"
#include "weft/runtime/registry.h"
#include "weft/runtime/target.h"

namespace weft::runtime {

enum class Reducer : std::uint8_t {
  kSum,
  kProduct,
  kMin,
  kMax,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kGather,  // a vector of all contributions, in index order
  kConcat,  // contributions are vectors; one vector of their elements, in index order
  kCustom,
};

constexpr bool is_logical(Reducer reducer) {
  return reducer == Reducer::kLogicalAnd || reducer == Reducer::kLogicalOr || reducer == Reducer::kLogicalXor;
}

// Where the elements of a packed value are, if each is merged with the one at its place in another value. Such values can be
// merged part by part, see src/runtime/collective/cut_plan.h.
struct ElementLayout {
  // into[i] = first[i] op second[i] for `count` elements. `into` may be `first` or `second`; they do not overlap otherwise.
  using Merge = void (*)(Reducer reducer, std::byte* into, const std::byte* first, const std::byte* second,
                         std::size_t count);
  Merge merge = nullptr;          // null: the value cannot be cut
  std::size_t element_bytes = 0;  // not 0 if it can
  std::size_t first_element =
      0;  // its position; the elements reach to the end. What precedes them is equal in values that can be merged
};

// `accumulated` and `more` are packed values. The function stores the merged value in `accumulated`.
struct Combiner {
  using Function = void (*)(Runtime& runtime, Reducer reducer, std::vector<std::byte>& accumulated,
                            std::span<const std::byte> more);
  // Asked about large values only. Null: none can be cut. It does not throw.
  using LayoutFunction = ElementLayout (*)(Reducer reducer, std::span<const std::byte> value);
  std::string_view name;
  Function function = nullptr;
  std::uint32_t id = 0;
  LayoutFunction layout = nullptr;
};

namespace reduction_detail {

// If one of the two is NaN, the result is NaN. It therefore does not depend on the order of contributions.
template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return std::min(a, b);
}
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return std::max(a, b);
}

template <class T>
T merge(Reducer reducer, T a, T b) {
  switch (reducer) {
    case Reducer::kSum:
      return static_cast<T>(a + b);
    case Reducer::kProduct:
      return static_cast<T>(a * b);
    case Reducer::kMin:
      return smaller(a, b);
    case Reducer::kMax:
      return larger(a, b);
    case Reducer::kLogicalAnd:
      return static_cast<T>(a && b);
    case Reducer::kLogicalOr:
      return static_cast<T>(a || b);
    case Reducer::kLogicalXor:
      return static_cast<T>(!a != !b);
    default:
      throw base::Error(base::StatusCode::kInvalidArgument, "this reducer does not apply to numbers");
  }
}

[[noreturn]] void throw_length_mismatch(std::size_t a, std::size_t b);

template <class T>
void merge_into(Reducer reducer, T& a, const T& b) {
  a = merge(reducer, a, b);
}
template <class T>
void merge_into(Reducer reducer, std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) throw_length_mismatch(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = merge(reducer, a[i], b[i]);
}

// Packs into the storage that `bytes` has.
template <class T>
void pack_into(std::vector<std::byte>& bytes, const T& value, Runtime& runtime) {
  bytes.resize(base::packed_size(value, &runtime));
  Pup p = Pup::packer(bytes.data(), bytes.size(), &runtime);
  p | value;
}

// For ElementLayout. A case for each common reducer, so that the loop contains no choice.
template <class Number, class Merge>
void merge_each(std::byte* into, const std::byte* first, const std::byte* second, std::size_t count,
                Merge merge_two) {
  for (std::size_t i = 0; i < count;
       ++i, into += sizeof(Number), first += sizeof(Number), second += sizeof(Number)) {
    Number a{};
    Number b{};
    std::memcpy(&a, first, sizeof a);
    std::memcpy(&b, second, sizeof b);
    a = merge_two(a, b);
    std::memcpy(into, &a, sizeof a);
  }
}
template <class Number>
void merge_elements(Reducer reducer, std::byte* into, const std::byte* first, const std::byte* second,
                    std::size_t count) {
  switch (reducer) {
    case Reducer::kSum:
      return merge_each<Number>(into, first, second, count,
                                [](Number a, Number b) { return merge(Reducer::kSum, a, b); });
    case Reducer::kMin:
      return merge_each<Number>(into, first, second, count,
                                [](Number a, Number b) { return merge(Reducer::kMin, a, b); });
    case Reducer::kMax:
      return merge_each<Number>(into, first, second, count,
                                [](Number a, Number b) { return merge(Reducer::kMax, a, b); });
    default:
      return merge_each<Number>(into, first, second, count,
                                [reducer](Number a, Number b) { return merge(reducer, a, b); });
  }
}

// Merges packed vectors in place: a number of elements, then the elements.
template <class Number>
void combine_vectors(Reducer reducer, std::vector<std::byte>& accumulated, std::span<const std::byte> more) {
  Pup into = Pup::unpacker(accumulated.data(), accumulated.size());
  Pup from = Pup::unpacker(more.data(), more.size());
  const std::size_t count = into.count(0, sizeof(Number));
  const std::size_t count_more = from.count(0, sizeof(Number));
  if (count != count_more) throw_length_mismatch(count, count_more);
  std::byte* a = accumulated.data() + into.offset_bytes();
  merge_elements<Number>(reducer, a, a, from.cursor(), count);
}

template <class T>
struct IsPlainVector : std::false_type {};
template <class T>
struct IsPlainVector<std::vector<T>> : std::bool_constant<!std::is_same_v<T, bool>> {};

template <class T>
void combine_values(Runtime& runtime, Reducer reducer, std::vector<std::byte>& accumulated,
                    std::span<const std::byte> more) {
  if constexpr (IsPlainVector<T>::value) {
    combine_vectors<typename T::value_type>(reducer, accumulated, more);
  } else {
    T merged = base::unpack<T>(accumulated, &runtime);
    merge_into(reducer, merged, base::unpack<T>(more, &runtime));
    pack_into(accumulated, merged, runtime);
  }
}

template <class T, auto Merge>
void combine_custom(Runtime& runtime, Reducer, std::vector<std::byte>& accumulated,
                    std::span<const std::byte> more) {
  T merged = Merge(base::unpack<T>(accumulated, &runtime), base::unpack<T>(more, &runtime));
  pack_into(accumulated, merged, runtime);
}

// A packed vector is its number of elements, then the elements.
template <class T>
constexpr Combiner::LayoutFunction layout_of_values() {
  if constexpr (IsPlainVector<T>::value) {
    return [](Reducer reducer, std::span<const std::byte> value) -> ElementLayout {
      using Number = typename T::value_type;
      if (reducer > Reducer::kLogicalXor || value.size() < sizeof(std::uint64_t)) return {};
      return {&merge_elements<Number>, sizeof(Number), sizeof(std::uint64_t)};
    };
  } else {
    return nullptr;
  }
}

template <class T>
struct ValueCombiner {
  static inline Combiner info{type_name<T>(), &combine_values<T>, 0, layout_of_values<T>()};
  static inline bool registered = Registry<Combiner>::add(&info);
};

template <class T, auto Merge>
struct CustomCombiner {
  static inline Combiner info{value_name<Merge>(), &combine_custom<T, Merge>, 0};
  static inline bool registered = Registry<Combiner>::add(&info);
};

template <class T>
struct IsNumeric : std::is_arithmetic<T> {};
template <class T>
struct IsNumeric<std::vector<T>> : std::is_arithmetic<T> {};

}  // namespace reduction_detail

// The combiner for contributions of type T; null for kGather and kConcat, which need none.
template <class T>
const Combiner* value_combiner(Reducer reducer) {
  if (reducer == Reducer::kGather || reducer == Reducer::kConcat) return nullptr;
  if constexpr (reduction_detail::IsNumeric<T>::value) {
    static_cast<void>(reduction_detail::ValueCombiner<T>::registered);
    return &reduction_detail::ValueCombiner<T>::info;
  } else {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "only numbers and vectors of numbers have sum, product, min, max and logical reducers; pass a "
        "function `T merge(T, T)` as contribute<&merge>(value, target), or use kGather");
  }
}

// Packs a contribution for value_combiner(). For logical reducers it converts each number to 0 or 1 here,
// because a reduction with one contribution merges nothing.
template <class T>
base::SmallBytes pack_contribution(const T& value, Reducer reducer, Runtime& runtime) {
  if constexpr (reduction_detail::IsNumeric<T>::value) {
    if (is_logical(reducer)) {
      T truth = value;
      reduction_detail::merge_into(Reducer::kLogicalOr, truth, value);
      return base::pack_small(truth, &runtime);
    }
  }
  return base::pack_small(value, &runtime);
}

// Packed contributions of this size and more are in memory that is kept for the next ones, and become the PE's value without a
// further copy. No smaller value is deferred, see src/runtime/collective/deferred_value.h.
inline constexpr std::size_t kLargeContributionBytes = std::size_t{8} << 10;
// Any content.
std::vector<std::byte> large_contribution_memory(Runtime& runtime, std::size_t size_bytes);

// Vectors of numbers, but not of bools.
template <class T>
inline constexpr bool may_be_large_contribution =
    reduction_detail::IsPlainVector<T>::value && reduction_detail::IsNumeric<T>::value;
template <class T>
bool is_large_contribution(const std::vector<T>& value) {
  return value.size() >= kLargeContributionBytes / sizeof(T);
}
// As pack_contribution(), for a vector of numbers.
template <class T>
std::vector<std::byte> pack_large_contribution(const T& value, Reducer reducer, Runtime& runtime) {
  std::vector<std::byte> bytes = large_contribution_memory(runtime, base::packed_size(value, &runtime));
  Pup p = Pup::packer(bytes.data(), bytes.size(), &runtime);
  if (is_logical(reducer)) {
    T truth = value;
    reduction_detail::merge_into(Reducer::kLogicalOr, truth, value);
    p | truth;
  } else {
    p | value;
  }
  return bytes;
}

// The combiner for contributions without a value. Their reducer is kCustom, and the result has no bytes.
const Combiner* nothing_combiner();

template <class T, auto Merge>
const Combiner* custom_combiner() {
  static_cast<void>(reduction_detail::CustomCombiner<T, Merge>::registered);
  return &reduction_detail::CustomCombiner<T, Merge>::info;
}

}  // namespace weft::runtime
