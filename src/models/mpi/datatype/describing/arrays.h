// The constructors of parts of arrays: MPI_Type_create_subarray and MPI_Type_create_darray (MPI 5.0, section 5.1.3 and 5.1.4).
#pragma once

#include <span>

#include "models/mpi/datatype/describing/constructors.h"

namespace weft::mpi {

struct Subarray {
  CountSpan sizes;
  CountSpan subsizes;
  CountSpan starts;
  int order;  // MPI_ORDER_C or MPI_ORDER_FORTRAN
};
Error make_subarray(const Subarray& array, Datatype& old, CallForm form, Ref<Datatype>* made);

// The part of a distributed array that one process has.
struct DistributedArray {
  int size;
  int rank;
  CountSpan sizes;
  std::span<const int> distributions;
  std::span<const int> arguments;
  std::span<const int> processes;
  int order;
};
Error make_darray(const DistributedArray& array, Datatype& old, CallForm form, Ref<Datatype>* made);

}  // namespace weft::mpi
