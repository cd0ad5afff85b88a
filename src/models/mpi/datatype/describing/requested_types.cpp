// Datatypes that a program asks for by their properties: Fortran types of a precision, types of a size, pairs of a value and an index.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/format.h"
#include "models/mpi/datatype/describing/assembly.h"
#include "models/mpi/datatype/predefined.h"

namespace weft::mpi {
namespace {

// A kind of Fortran's REAL: the decimal digits and the decimal exponent range that it has, and types with its representation.
struct RealKind {
  int precision;
  int range;
  MPI_Datatype real;
  MPI_Datatype complex;
};

// The kinds of gfortran. A long double of 80 bits is REAL(10), which no other type of MPI stands for.
const std::array<RealKind, 4> kRealKinds{{
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
    {std::numeric_limits<long double>::digits10, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
}};

struct IntegerKind {
  int range;
  MPI_Datatype type;
};

const std::array<IntegerKind, 5> kIntegerKinds{{
    {2, MPI_INTEGER1},
    {4, MPI_INTEGER2},
    {9, MPI_INTEGER4},
    {18, MPI_INTEGER8},
    {38, MPI_INTEGER16},
}};

Error find_real_kind(int precision, int range, const RealKind** found) {
  if (precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
    return {MPI_ERR_ARG, "precision and range are both MPI_UNDEFINED; give at least one of them"};
  const auto* kind = std::find_if(kRealKinds.begin(), kRealKinds.end(), [&](const RealKind& candidate) {
    return (precision == MPI_UNDEFINED || precision <= candidate.precision) &&
           (range == MPI_UNDEFINED || range <= candidate.range);
  });
  if (kind == kRealKinds.end())
    return {MPI_ERR_ARG,
            base::format("no REAL has {} decimal digits and the exponent range {}; the most are 33 and 4931",
                         precision, range)};
  *found = kind;
  return {};
}

// Sized types by class, in the order of their sizes.
MPI_Datatype sized_type(int type_class, int size) {
  constexpr int kLogicalClass = 191;  // MPI_TYPECLASS_LOGICAL of MPI 5.1
  switch (type_class) {
    case MPI_TYPECLASS_INTEGER:
      switch (size) {
        case 1:
          return MPI_INTEGER1;
        case 2:
          return MPI_INTEGER2;
        case 4:
          return MPI_INTEGER4;
        case 8:
          return MPI_INTEGER8;
        case 16:
          return MPI_INTEGER16;
        default:
          return MPI_DATATYPE_NULL;
      }
    case MPI_TYPECLASS_REAL:
      switch (size) {
        case 2:
          return MPI_REAL2;
        case 4:
          return MPI_REAL4;
        case 8:
          return MPI_REAL8;
        case 16:
          return MPI_REAL16;
        default:
          return MPI_DATATYPE_NULL;
      }
    case MPI_TYPECLASS_COMPLEX:
      switch (size) {
        case 4:
          return MPI_COMPLEX4;
        case 8:
          return MPI_COMPLEX8;
        case 16:
          return MPI_COMPLEX16;
        case 32:
          return MPI_COMPLEX32;
        default:
          return MPI_DATATYPE_NULL;
      }
    case kLogicalClass:
      switch (size) {
        case 1:
          return MPI_LOGICAL1;
        case 2:
          return MPI_LOGICAL2;
        case 4:
          return MPI_LOGICAL4;
        case 8:
          return MPI_LOGICAL8;
        case 16:
          return MPI_LOGICAL16;
        default:
          return MPI_DATATYPE_NULL;
      }
    default:
      return MPI_DATATYPE_NULL;
  }
}

}  // namespace

// The datatype of a request: the same one each time.
Datatype* PredefinedTypes::requested(const RequestedKey& key, MPI_Datatype like) {
  Ref<Datatype>& type = requested_[key];
  if (!type) {
    const auto [combiner, first, second] = key;
    Recipe recipe(combiner);
    recipe.add_integer(first);
    if (combiner != MPI_COMBINER_F90_INTEGER) recipe.add_integer(second);
    type = make_datatype(basic_shape(*basic_type(like)), std::move(recipe));
    type->commit();
  }
  return type.get();
}

void PredefinedTypes::keep_requested(Datatype& type) {
  const std::vector<int>& integers = type.recipe().integers;
  const int second = integers.size() > 1 ? integers[1] : 0;
  requested_[{type.recipe().combiner, integers.at(0), second}] = Ref<Datatype>(type);
}

Error PredefinedTypes::f90_real(int precision, int range, Datatype** made) {
  const RealKind* kind = nullptr;
  if (Error error = find_real_kind(precision, range, &kind); !error.ok()) return error;
  *made = requested({MPI_COMBINER_F90_REAL, precision, range}, kind->real);
  return {};
}

Error PredefinedTypes::f90_complex(int precision, int range, Datatype** made) {
  const RealKind* kind = nullptr;
  if (Error error = find_real_kind(precision, range, &kind); !error.ok()) return error;
  *made = requested({MPI_COMBINER_F90_COMPLEX, precision, range}, kind->complex);
  return {};
}

Error PredefinedTypes::f90_integer(int range, Datatype** made) {
  const auto* kind = std::find_if(kIntegerKinds.begin(), kIntegerKinds.end(),
                                  [range](const IntegerKind& candidate) { return range <= candidate.range; });
  if (range == MPI_UNDEFINED || kind == kIntegerKinds.end())
    return {MPI_ERR_ARG, base::format("no INTEGER has {} decimal digits; the most are 38", range)};
  *made = requested({MPI_COMBINER_F90_INTEGER, range, 0}, kind->type);
  return {};
}

Error PredefinedTypes::match_size(int type_class, int size, Datatype** found) const {
  const MPI_Datatype type = sized_type(type_class, size);
  if (type == MPI_DATATYPE_NULL)
    return {MPI_ERR_ARG,
            base::format(
                "no type of class {} has {} bytes; the classes are MPI_TYPECLASS_INTEGER, _REAL and _COMPLEX",
                type_class, size)};
  *found = find(type);
  return {};
}

Datatype* PredefinedTypes::value_index(const Datatype& value, const Datatype& index) const {
  Datatype* named = nullptr;
  for_each_pair_type([&](const PairType& pair) {
    if (pair.value == value.handle() && pair.index == index.handle()) named = find(pair.handle);
  });
  return named;
}

}  // namespace weft::mpi
