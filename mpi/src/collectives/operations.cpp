// Reduction operators, and reductions within one process.
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "collectives/device_copies.h"
#include "entry/entry.h"
#include "entry/type_handles.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/operation/reduction_operator.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

namespace {

template <class Function>
int create_operation(const char* caller, Function* function, int commute, MPI_Op* op) {
  return guarded(caller, kNoObject, [&]() -> Error {
    if (Error error = check_result(op); !error.ok()) return error;
    if (Error error = require({{reinterpret_cast<const void*>(function), "user_fn"}}); !error.ok())
      return error;
    *op = Ref<ReductionOperator>::adopt(new ReductionOperator(function, commute != 0)).leave()->handle();
    return {};
  });
}

// Checks the buffers of MPI_Reduce_local. REQUIRES: there are elements.
Error check_buffers(const void* inbuf, const void* inoutbuf) {
  for (const void* const buffer : {inbuf, inoutbuf}) {
    if (!is_address(buffer))
      return {MPI_ERR_BUFFER,
              weft::base::format("a buffer is {}; give its address", describe_sentinel(buffer))};
  }
  if (inbuf != inoutbuf) return {};
  return {MPI_ERR_BUFFER, "both buffers are the same memory; give the other elements a buffer of their own"};
}

}  // namespace

int MPI_Op_create(MPI_User_function* user_fn, int commute, MPI_Op* op) {
  return create_operation(__func__, user_fn, commute, op);
}

int MPI_Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) {
  return create_operation(__func__, user_fn, commute, op);
}

int MPI_Op_free(MPI_Op* op) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    ReductionOperator* operation = nullptr;
    if (Error error = check_result(op); !error.ok()) return error;
    if (Error error = find_operation(*op, &operation); !error.ok()) return error;
    if (operation->is_predefined())
      return {MPI_ERR_OP, "the operator is predefined; free those only that the program has made"};
    operation->release();
    *op = MPI_OP_NULL;
    return {};
  });
}

int MPI_Op_commutative(MPI_Op op, int* commute) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    ReductionOperator* operation = nullptr;
    if (Error error = check_result(commute); !error.ok()) return error;
    if (Error error = find_operation(op, &operation); !error.ok()) return error;
    *commute = operation->is_commutative() ? 1 : 0;
    return {};
  });
}

int MPI_Reduce_local_c(const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    ReductionOperator* operation = nullptr;
    if (Error error = check_count(count); !error.ok()) return error;
    if (Error error = find_committed_type(datatype, &type); !error.ok()) return error;
    if (Error error = find_operation(op, &operation); !error.ok()) return error;
    if (Error error = operation->check(*type); !error.ok()) return error;
    if (!type->packed_size(count))
      return {MPI_ERR_COUNT, "the size of that many elements does not fit 64 bits; give a smaller count"};
    if (count > 0 && type->size_bytes() > 0)
      if (Error error = check_buffers(inbuf, inoutbuf); !error.ok()) return error;
    const HostElements in(*type, const_cast<void*>(inbuf), count);
    const HostElements inout(*type, inoutbuf, count);
    if (Error error = in.read(); !error.ok()) return error;
    if (Error error = inout.read(); !error.ok()) return error;
    operation->reduce(in.buffer(), inout.buffer(), count, *type);
    return inout.write_back();
  });
}
