#include "entry/type_handles.h"

#include "base/format.h"
#include "models/mpi/objects/addresses.h"

namespace weft::mpi {

Error find_type(MPI_Datatype handle, Datatype** found) {
  *found = datatype_of(handle);
  if (*found != nullptr) return {};
  if (handle == MPI_DATATYPE_NULL)
    return {MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL; give a datatype"};
  return {MPI_ERR_TYPE, "the handle is no datatype; has it been freed?"};
}

Error find_committed_type(MPI_Datatype handle, Datatype** found) {
  if (Error error = find_type(handle, found); !error.ok()) return error;
  if ((*found)->is_committed()) return {};
  return {MPI_ERR_TYPE,
          "the datatype is not committed; call MPI_Type_commit before you transfer data with it"};
}

bool is_kept(const Datatype& type) {
  switch (type.recipe().combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
      return true;
    default:
      return false;
  }
}

MPI_Datatype give_type(Datatype& type) {
  if (!is_kept(type)) type.acquire();
  return type.handle();
}

Error find_operation(MPI_Op handle, ReductionOperator** found) {
  *found = operation_of(handle);
  if (*found != nullptr) return {};
  if (handle == MPI_OP_NULL) return {MPI_ERR_OP, "the operator is MPI_OP_NULL; give an operator"};
  return {MPI_ERR_OP, "the handle is no operator; has it been freed?"};
}

Error check_count(MPI_Count count) {
  if (count >= 0) return {};
  return {MPI_ERR_COUNT, base::format("the count is {}; give 0 or more", count)};
}

Error check_result_address(const void* result) {
  if (is_address(result)) return {};
  return {MPI_ERR_ARG, base::format("the pointer for a result is {}; give the address of a variable",
                                    describe_sentinel(result))};
}

}  // namespace weft::mpi
