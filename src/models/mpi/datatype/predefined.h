// The datatypes that exist without a constructor: one object for each constant of the ABI, and those that MPI makes on request, which
// the program does not free (MPI_Type_create_f90_real and its kin). A rank has one object of this class,
// because programs may give names and attributes to predefined datatypes.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "models/mpi/datatype/datatype.h"

namespace weft::mpi {

class PredefinedTypes {
 public:
  PredefinedTypes();

  // The datatype of a constant of the ABI; null for MPI_DATATYPE_NULL and for other handles.
  Datatype* find(MPI_Datatype constant) const {
    const int number = predefined_number(constant);
    return number < 0 ? nullptr : types_[static_cast<std::size_t>(number)].get();
  }

  // MPI_Type_create_f90_real, _complex, _integer. The same arguments give the same datatype. A precision or range may be
  // MPI_UNDEFINED. Errors: MPI_ERR_ARG if no type has the precision and range.
  Error f90_real(int precision, int range, Datatype** made);
  Error f90_complex(int precision, int range, Datatype** made);
  Error f90_integer(int range, Datatype** made);

  // MPI_Type_match_size. Errors: MPI_ERR_ARG if there is no such class, or no type of that size in it.
  Error match_size(int type_class, int size, Datatype** found) const;

  // MPI_Type_get_value_index: the named type of pairs for MPI_MINLOC and MPI_MAXLOC; null if there is none.
  Datatype* value_index(const Datatype& value, const Datatype& index) const;

  // Calls visit(Datatype&) for each predefined datatype to which the program has given another name, or attributes.
  template <class Visit>
  void for_each_changed(Visit&& visit) const {
    const auto visit_named = [&](MPI_Datatype handle, const char* name) {
      Datatype& type = *find(handle);
      if (type.name() != name || type.has_attributes()) visit(type);
    };
    for_each_basic_type([&](const BasicType& type) { visit_named(type.handle, type.name); });
    for_each_pair_type([&](const PairType& type) { visit_named(type.handle, type.name); });
  }

  // --- Datatypes that MPI makes on request, of a rank that moves
  // Forgets all of them.
  void forget_requested() { requested_.clear(); }
  // Returns this one for its request from now on. REQUIRES: its recipe is that of a request.
  void keep_requested(Datatype& type);

 private:
  using RequestedKey = std::tuple<int, int, int>;  // the combiner and its two arguments

  void add_basic(const BasicType& type);
  void add_pair(const PairType& type);
  Datatype* requested(const RequestedKey& key, MPI_Datatype like);

  std::array<Ref<Datatype>, kNumPredefinedTypes> types_;
  std::map<RequestedKey, Ref<Datatype>> requested_;
};

// The shape of a single value of a basic type.
Shape basic_shape(const BasicType& type);
// The shape of a C struct of a value and an index.
Shape pair_shape(const BasicType& value, const BasicType& index);

}  // namespace weft::mpi
