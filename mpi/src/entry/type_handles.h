// From handles of datatypes and operators to objects.
#pragma once

#include "entry/handles.h"
#include "models/mpi/datatype/datatype.h"
#include "models/mpi/operation/reduction_operator.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

// Null if the handle refers to no datatype.
inline Datatype* datatype_of(MPI_Datatype handle) {
  if (is_predefined(handle)) return this_rank().types.find(handle);
  return object_of<Datatype>(handle, ObjectKind::kDatatype);
}

// Null if the handle refers to no operator.
inline ReductionOperator* operation_of(MPI_Op handle) {
  if (is_predefined(handle)) return this_rank().operations.find(handle);
  return object_of<ReductionOperator>(handle, ObjectKind::kOperation);
}

// Errors: MPI_ERR_TYPE.
Error find_type(MPI_Datatype handle, Datatype** found);
// For transfers: the datatype must be committed.
Error find_committed_type(MPI_Datatype handle, Datatype** found);
// MPI keeps it, so the program does not free it.
bool is_kept(const Datatype& type);
// Gives the program the handle of a datatype of which it has been told: one that it must free, unless MPI keeps the datatype.
MPI_Datatype give_type(Datatype& type);
// Errors: MPI_ERR_OP.
Error find_operation(MPI_Op handle, ReductionOperator** found);

// Errors: MPI_ERR_COUNT for a negative count.
Error check_count(MPI_Count count);
// Errors: MPI_ERR_ARG for a pointer that is no address where the function puts a result.
Error check_result_address(const void* result);
template <class T>
Error check_result(T* result) {
  return check_result_address(static_cast<const void*>(result));
}

}  // namespace weft::mpi
