#include "memory/kinds/software/software_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace weft::memory {

namespace {

// --- Two-byte floating-point numbers: combined as float32.

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = std::ldexp(static_cast<float>(fraction), -24);
  return sign != 0 ? -subnormal : subnormal;
}

std::uint16_t to_float16(float value) {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000U);
  const float size = std::fabs(value);
  if (std::isnan(value)) return 0x7fff;
  if (size >= 65520.0F) return sign | 0x7c00U;
  // Numbers below 2^-14, with 0, have the steps of 2^-14. nearbyint() rounds to even.
  int exponent = 0;
  std::frexp(size, &exponent);
  const int step = size == 0 ? -24 : std::max(exponent - 11, -24);
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -step)));
  // A carry into the exponent is right: 2048 steps are the next exponent's first.
  if (step == -24) return sign | static_cast<std::uint16_t>(steps);
  return sign | static_cast<std::uint16_t>((static_cast<std::uint32_t>(step + 25) << 10) + steps - 1024U);
}

template <class Stored, class Value, Value (*load)(Stored), Stored (*store)(Value)>
struct Element {
  using Bits = Stored;
  static Value read(const std::byte* from) {
    Stored bits;
    std::memcpy(&bits, from, sizeof bits);
    return load(bits);
  }
  static void write(std::byte* to, Value value) {
    const Stored bits = store(value);
    std::memcpy(to, &bits, sizeof bits);
  }
};

template <class T>
T same(T value) {
  return value;
}
template <class T>
using Plain = Element<T, T, same<T>, same<T>>;

// --- Combinations. Integers wrap; a NaN is the result.

template <class T>
T combine(Combination how, T left, T right) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto a = static_cast<Unsigned>(left);
    const auto b = static_cast<Unsigned>(right);
    if (how == Combination::kSum) return static_cast<T>(a + b);
    if (how == Combination::kProduct) return static_cast<T>(a * b);
  } else {
    if (how == Combination::kSum) return left + right;
    if (how == Combination::kProduct) return left * right;
    if (std::isnan(left) || std::isnan(right)) return left + right;
  }
  if (how == Combination::kMin) return right < left ? right : left;
  return left < right ? right : left;
}

template <class Element>
void reduce_elements(const DeviceReduction& reduction) {
  for (std::size_t i = 0; i < reduction.num_elements; ++i) {
    const std::size_t at = i * sizeof(typename Element::Bits);
    auto value = Element::read(reduction.sources.items[0] + at);
    for (std::uint32_t source = 1; source < reduction.sources.size; ++source)
      value = combine(reduction.combination, value, Element::read(reduction.sources.items[source] + at));
    Element::write(reduction.out + at, value);
  }
}

}  // namespace

void reduce_on_cpu(const DeviceReduction& reduction) {
  if (reduction.sources.size == 0) return;
  switch (reduction.type) {
    case ElementType::kInt32:
      return reduce_elements<Plain<std::int32_t>>(reduction);
    case ElementType::kInt64:
      return reduce_elements<Plain<std::int64_t>>(reduction);
    case ElementType::kFloat16:
      return reduce_elements<Element<std::uint16_t, float, from_float16, to_float16>>(reduction);
    case ElementType::kBfloat16:
      return reduce_elements<Element<std::uint16_t, float, from_bfloat16, to_bfloat16>>(reduction);
    case ElementType::kFloat32:
      return reduce_elements<Plain<float>>(reduction);
    case ElementType::kFloat64:
      return reduce_elements<Plain<double>>(reduction);
    case ElementType::kByte:
      return;
  }
}

}  // namespace weft::memory
