// The basic datatypes: single values that every other datatype consists of, and the table of all datatypes that MPI predefines.
// A pair type such as MPI_DOUBLE_INT is predefined, but consists of two basic datatypes.
#pragma once

#include <cstdint>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

// The kind of a value, which decides what operators may do with it.
enum class BasicKind : std::uint8_t {
  kByte,       // uninterpreted: MPI_BYTE, MPI_PACKED
  kCharacter,  // printable: MPI_CHAR, MPI_CHARACTER, MPI_WCHAR
  kInteger,
  kReal,
  kComplex,
  kLogical,
};

// How the value, or each of the two parts of a complex value, is represented in memory.
enum class Number : std::uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kInt128,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kHalf,
  kFloat,
  kDouble,
  kLongDouble,
  kQuad,
};

struct BasicType {
  MPI_Datatype handle;
  const char* name;
  BasicKind kind;
  Number number;
  std::uint8_t size;           // bytes in memory
  std::uint8_t alignment;      // of the type in a C struct
  std::uint8_t external_size;  // bytes in "external32"
};

// A predefined type of a value and an index, for MPI_MINLOC and MPI_MAXLOC. Laid out like a C struct.
struct PairType {
  MPI_Datatype handle;
  const char* name;
  MPI_Datatype value;
  MPI_Datatype index;
};

// The basic type with this handle; null if the handle is of another kind.
const BasicType* basic_type(MPI_Datatype handle);
const PairType* pair_type(MPI_Datatype handle);

// Where the index of a pair is, and the size of the C struct.
struct PairLayout {
  int index_offset;
  int extent;
  int alignment;
};
PairLayout pair_layout(const BasicType& value, const BasicType& index);

// Calls visit(const BasicType&) for each basic type of the table, visit(const PairType&) for each pair.
template <class Visit>
void for_each_basic_type(Visit&& visit);
template <class Visit>
void for_each_pair_type(Visit&& visit);

namespace detail {
const BasicType* basic_types_begin();
const BasicType* basic_types_end();
const PairType* pair_types_begin();
const PairType* pair_types_end();
}  // namespace detail

template <class Visit>
void for_each_basic_type(Visit&& visit) {
  for (const BasicType* type = detail::basic_types_begin(); type != detail::basic_types_end(); ++type)
    visit(*type);
}
template <class Visit>
void for_each_pair_type(Visit&& visit) {
  for (const PairType* type = detail::pair_types_begin(); type != detail::pair_types_end(); ++type)
    visit(*type);
}

// The ABI's constants for datatypes, from its number 0 on.
inline constexpr std::uintptr_t kFirstTypeConstant = 0x200;
inline constexpr int kNumPredefinedTypes = 256;

// The number in the ABI constant of a predefined handle; -1 for a handle that is no constant.
inline int predefined_number(MPI_Datatype handle) {
  const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(handle) - kFirstTypeConstant;
  return number < kNumPredefinedTypes ? static_cast<int>(number) : -1;
}

}  // namespace weft::mpi
