// Recipe: the call that made a datatype, for MPI_Type_get_envelope and MPI_Type_get_contents.
#pragma once

#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/counted.h"

namespace weft::mpi {

class Datatype;

// The form of the call: MPI_Type_vector (counts are ints, distances in bytes are MPI_Aint) or MPI_Type_vector_c (both are MPI_Count).
// The contents are reported in the form in which they were given.
enum class CallForm { kSmall, kLarge };

struct Recipe {
  // Defined in datatype.cpp, which knows what it holds.
  explicit Recipe(int combiner_of_call, CallForm form_of_call = CallForm::kSmall);

  int combiner;
  CallForm form;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<Ref<Datatype>> datatypes;

  // The order of the calls is the order of the contents. A count of the small form fits an int.
  void add_integer(int value) { integers.push_back(value); }
  void add_count(MPI_Count value) {
    if (form == CallForm::kSmall) {
      integers.push_back(static_cast<int>(value));
    } else {
      counts.push_back(value);
    }
  }
  void add_bytes(MPI_Count value) {
    if (form == CallForm::kSmall) {
      addresses.push_back(value);
    } else {
      counts.push_back(value);
    }
  }
};

}  // namespace weft::mpi
