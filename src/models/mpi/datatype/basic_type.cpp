#include "models/mpi/datatype/basic_type.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace weft::mpi {
namespace {

template <class T>
constexpr Number number_of_integer() {
  constexpr int kSteps = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  constexpr Number kFirst = std::is_signed_v<T> ? Number::kInt8 : Number::kUint8;
  return static_cast<Number>(static_cast<int>(kFirst) + kSteps);
}

template <class T>
constexpr BasicType integer(MPI_Datatype handle, const char* name, int external_size = sizeof(T),
                            BasicKind kind = BasicKind::kInteger) {
  return {handle,
          name,
          kind,
          number_of_integer<T>(),
          sizeof(T),
          alignof(T),
          static_cast<std::uint8_t>(external_size)};
}

constexpr BasicType real(MPI_Datatype handle, const char* name, Number number, int size) {
  const auto bytes = static_cast<std::uint8_t>(size);
  return {handle, name, BasicKind::kReal, number, bytes, bytes, bytes};
}

constexpr BasicType complex(MPI_Datatype handle, const char* name, Number number, int part) {
  const auto bytes = static_cast<std::uint8_t>(2 * part);
  return {handle, name, BasicKind::kComplex, number, bytes, static_cast<std::uint8_t>(part), bytes};
}

constexpr BasicType logical(MPI_Datatype handle, const char* name, Number number, int size) {
  const auto bytes = static_cast<std::uint8_t>(size);
  return {handle, name, BasicKind::kLogical, number, bytes, bytes, bytes};
}

constexpr BasicKind kCharacterKind = BasicKind::kCharacter;
static_assert(sizeof(long double) == 16 || sizeof(long double) == 8);
// "external32" has 16 bytes for a long double; where the C type is a double, it is converted.
constexpr int kLongDouble = sizeof(long double);
constexpr BasicType long_double_type(MPI_Datatype handle, const char* name) {
  return {handle, name, BasicKind::kReal, Number::kLongDouble, kLongDouble, alignof(long double), 16};
}
constexpr BasicType long_double_complex(MPI_Datatype handle, const char* name) {
  return {handle, name, BasicKind::kComplex, Number::kLongDouble, 2 * kLongDouble, alignof(long double), 32};
}

// Handles are pointers made of constants, so the tables are built at start, not by the compiler.
const BasicType kBasicTypes[] = {
    {MPI_BYTE, "MPI_BYTE", BasicKind::kByte, Number::kUint8, 1, 1, 1},
    {MPI_PACKED, "MPI_PACKED", BasicKind::kByte, Number::kUint8, 1, 1, 1},
    integer<char>(MPI_CHAR, "MPI_CHAR", 1, kCharacterKind),
    integer<wchar_t>(MPI_WCHAR, "MPI_WCHAR", 2, kCharacterKind),
    integer<signed char>(MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR"),
    integer<unsigned char>(MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR"),
    integer<short>(MPI_SHORT, "MPI_SHORT"),
    integer<unsigned short>(MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT"),
    integer<int>(MPI_INT, "MPI_INT"),
    integer<unsigned>(MPI_UNSIGNED, "MPI_UNSIGNED"),
    integer<long>(MPI_LONG, "MPI_LONG", 4),
    integer<unsigned long>(MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", 4),
    integer<long long>(MPI_LONG_LONG, "MPI_LONG_LONG"),
    integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG"),
    integer<std::int8_t>(MPI_INT8_T, "MPI_INT8_T"),
    integer<std::uint8_t>(MPI_UINT8_T, "MPI_UINT8_T"),
    integer<std::int16_t>(MPI_INT16_T, "MPI_INT16_T"),
    integer<std::uint16_t>(MPI_UINT16_T, "MPI_UINT16_T"),
    integer<std::int32_t>(MPI_INT32_T, "MPI_INT32_T"),
    integer<std::uint32_t>(MPI_UINT32_T, "MPI_UINT32_T"),
    integer<std::int64_t>(MPI_INT64_T, "MPI_INT64_T"),
    integer<std::uint64_t>(MPI_UINT64_T, "MPI_UINT64_T"),
    integer<MPI_Aint>(MPI_AINT, "MPI_AINT", 8),
    integer<MPI_Count>(MPI_COUNT, "MPI_COUNT"),
    integer<MPI_Offset>(MPI_OFFSET, "MPI_OFFSET"),
    real(MPI_FLOAT, "MPI_FLOAT", Number::kFloat, 4),
    real(MPI_DOUBLE, "MPI_DOUBLE", Number::kDouble, 8),
    long_double_type(MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE"),
    complex(MPI_C_COMPLEX, "MPI_C_COMPLEX", Number::kFloat, 4),  // MPI_C_FLOAT_COMPLEX is a synonym
    complex(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", Number::kDouble, 8),
    long_double_complex(MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX"),
    complex(MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", Number::kFloat, 4),
    complex(MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", Number::kDouble, 8),
    long_double_complex(MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    logical(MPI_C_BOOL, "MPI_C_BOOL", Number::kUint8, 1),
    logical(MPI_CXX_BOOL, "MPI_CXX_BOOL", Number::kUint8, 1),
    // Fortran. INTEGER, LOGICAL and REAL have 4 bytes, as with every compiler that is not told otherwise.
    integer<char>(MPI_CHARACTER, "MPI_CHARACTER", 1, kCharacterKind),
    logical(MPI_LOGICAL, "MPI_LOGICAL", Number::kInt32, 4),
    integer<std::int32_t>(MPI_INTEGER, "MPI_INTEGER"),
    real(MPI_REAL, "MPI_REAL", Number::kFloat, 4),
    real(MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", Number::kDouble, 8),
    complex(MPI_COMPLEX, "MPI_COMPLEX", Number::kFloat, 4),
    complex(MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", Number::kDouble, 8),
    logical(MPI_LOGICAL1, "MPI_LOGICAL1", Number::kInt8, 1),
    logical(MPI_LOGICAL2, "MPI_LOGICAL2", Number::kInt16, 2),
    logical(MPI_LOGICAL4, "MPI_LOGICAL4", Number::kInt32, 4),
    logical(MPI_LOGICAL8, "MPI_LOGICAL8", Number::kInt64, 8),
    logical(MPI_LOGICAL16, "MPI_LOGICAL16", Number::kInt128, 16),
    integer<std::int8_t>(MPI_INTEGER1, "MPI_INTEGER1"),
    integer<std::int16_t>(MPI_INTEGER2, "MPI_INTEGER2"),
    integer<std::int32_t>(MPI_INTEGER4, "MPI_INTEGER4"),
    integer<std::int64_t>(MPI_INTEGER8, "MPI_INTEGER8"),
    {MPI_INTEGER16, "MPI_INTEGER16", BasicKind::kInteger, Number::kInt128, 16, 16, 16},
    real(MPI_REAL2, "MPI_REAL2", Number::kHalf, 2),
    real(MPI_REAL4, "MPI_REAL4", Number::kFloat, 4),
    real(MPI_REAL8, "MPI_REAL8", Number::kDouble, 8),
    real(MPI_REAL16, "MPI_REAL16", Number::kQuad, 16),
    complex(MPI_COMPLEX4, "MPI_COMPLEX4", Number::kHalf, 2),
    complex(MPI_COMPLEX8, "MPI_COMPLEX8", Number::kFloat, 4),
    complex(MPI_COMPLEX16, "MPI_COMPLEX16", Number::kDouble, 8),
    complex(MPI_COMPLEX32, "MPI_COMPLEX32", Number::kQuad, 16),
};

const PairType kPairTypes[] = {
    {MPI_FLOAT_INT, "MPI_FLOAT_INT", MPI_FLOAT, MPI_INT},
    {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", MPI_DOUBLE, MPI_INT},
    {MPI_LONG_INT, "MPI_LONG_INT", MPI_LONG, MPI_INT},
    {MPI_2INT, "MPI_2INT", MPI_INT, MPI_INT},
    {MPI_SHORT_INT, "MPI_SHORT_INT", MPI_SHORT, MPI_INT},
    {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE, MPI_INT},
    {MPI_2REAL, "MPI_2REAL", MPI_REAL, MPI_REAL},
    {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
    {MPI_2INTEGER, "MPI_2INTEGER", MPI_INTEGER, MPI_INTEGER},
};

// From the number of a constant to the type.
struct Index {
  std::array<const BasicType*, kNumPredefinedTypes> basic{};
  std::array<const PairType*, kNumPredefinedTypes> pair{};
  Index() {
    for (const BasicType& type : kBasicTypes)
      basic.at(static_cast<std::size_t>(predefined_number(type.handle))) = &type;
    for (const PairType& type : kPairTypes)
      pair.at(static_cast<std::size_t>(predefined_number(type.handle))) = &type;
  }
};

const Index& index() {
  static const Index kIndex;
  return kIndex;
}

}  // namespace

const BasicType* basic_type(MPI_Datatype handle) {
  const int number = predefined_number(handle);
  return number < 0 ? nullptr : index().basic[static_cast<std::size_t>(number)];
}

const PairType* pair_type(MPI_Datatype handle) {
  const int number = predefined_number(handle);
  return number < 0 ? nullptr : index().pair[static_cast<std::size_t>(number)];
}

PairLayout pair_layout(const BasicType& value, const BasicType& index) {
  const auto round_up = [](int size, int alignment) {
    return (size + alignment - 1) / alignment * alignment;
  };
  const int alignment = std::max(value.alignment, index.alignment);
  const int offset = round_up(value.size, index.alignment);
  return {offset, round_up(offset + index.size, alignment), alignment};
}

namespace detail {
const BasicType* basic_types_begin() { return std::begin(kBasicTypes); }
const BasicType* basic_types_end() { return std::end(kBasicTypes); }
const PairType* pair_types_begin() { return std::begin(kPairTypes); }
const PairType* pair_types_end() { return std::end(kPairTypes); }
}  // namespace detail

}  // namespace weft::mpi
