// The C++ type of each representation of a number, and the arithmetic that the operators need on it.
#pragma once

#include <bit>
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "models/mpi/datatype/basic_type.h"

namespace weft::mpi {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;
#if LDBL_MANT_DIG == 113
using Float128 = long double;
#else
__extension__ using Float128 = __float128;
#endif

// An IEEE number of 16 bits. It is computed with as a float.
class Half {
 public:
  Half() = default;
  explicit Half(float value) : bits_(from_float(value)) {}
  explicit operator float() const { return to_float(bits_); }
  friend bool operator<(Half left, Half right) { return float(left) < float(right); }
  friend bool operator==(Half left, Half right) { return float(left) == float(right); }

 private:
  static float to_float(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    const std::uint32_t fraction = bits & 0x3FFU;
    if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
      const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
    }
    const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + (127 - 15);
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
  // Rounds to the nearest, ties to even.
  static std::uint16_t from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);  // not a number
    if (magnitude >= 0x477FF000U)
      return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520 and more: infinite
    if (magnitude < 0x38800000U) {  // below 2^-14: the float addition rounds to a multiple of 2^-24
      const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3F000000U));
    }
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    return static_cast<std::uint16_t>(sign | ((magnitude - (112U << 23) + 0xFFFU + odd) >> 13));
  }

  std::uint16_t bits_;
};

// The type in which an operation is computed: without overflow that C++ leaves undefined, and a float for Half.
template <class T>
struct Computed {
  using Type = T;
};
template <>
struct Computed<Half> {
  using Type = float;
};
template <>
struct Computed<std::int16_t> {  // a product of two converted shorts could overflow an int
  using Type = std::uint32_t;
};
template <>
struct Computed<std::uint16_t> {
  using Type = std::uint32_t;
};
template <>
struct Computed<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct Computed<std::int64_t> {
  using Type = std::uint64_t;
};
template <>
struct Computed<Int128> {
  using Type = Uint128;
};

// From Number to T: visit.template operator()<T>().
template <class T>
struct TypeTag {
  using Type = T;
};

// Calls visit(TypeTag<T>()) with the integer type of that representation; returns R() for others.
template <class R, class Visit>
R with_integer(Number number, const Visit& visit) {
  switch (number) {
    case Number::kInt8:
      return visit(TypeTag<std::int8_t>());
    case Number::kInt16:
      return visit(TypeTag<std::int16_t>());
    case Number::kInt32:
      return visit(TypeTag<std::int32_t>());
    case Number::kInt64:
      return visit(TypeTag<std::int64_t>());
    case Number::kInt128:
      return visit(TypeTag<Int128>());
    case Number::kUint8:
      return visit(TypeTag<std::uint8_t>());
    case Number::kUint16:
      return visit(TypeTag<std::uint16_t>());
    case Number::kUint32:
      return visit(TypeTag<std::uint32_t>());
    case Number::kUint64:
      return visit(TypeTag<std::uint64_t>());
    default:
      return R();
  }
}

// As with_integer(), for the types of real numbers.
template <class R, class Visit>
R with_real(Number number, const Visit& visit) {
  switch (number) {
    case Number::kHalf:
      return visit(TypeTag<Half>());
    case Number::kFloat:
      return visit(TypeTag<float>());
    case Number::kDouble:
      return visit(TypeTag<double>());
    case Number::kLongDouble:
      return visit(TypeTag<long double>());
    case Number::kQuad:
      return visit(TypeTag<Float128>());
    default:
      return R();
  }
}

template <class R, class Visit>
R with_number(Number number, const Visit& visit) {
  return number < Number::kHalf ? with_integer<R>(number, visit) : with_real<R>(number, visit);
}

// inout[i] = Function()(in[i], inout[i])
template <class T, class Function>
void combine(const void* in, void* inout, MPI_Count count) {
  const T* __restrict__ from = static_cast<const T*>(in);
  T* __restrict__ to = static_cast<T*>(inout);
  for (MPI_Count i = 0; i < count; ++i) to[i] = Function()(from[i], to[i]);
}

}  // namespace weft::mpi
