// Check mode (`weft run --check`, WEFT_CHECK=1): before a reduction the processes compare what all must pass alike. Without it, operators
// that differ between processes give wrong results without an error, and a root that differs lets processes wait for ever.
#pragma once

#include <cstdint>

#include "weft/runtime/task.h"

#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/operation/reduction_operator.h"

namespace weft::mpi {

enum class ReductionKind : std::int32_t { kReduce, kAllreduce, kReduceScatter, kScan, kExscan };

// The arguments of a process that must agree with those of the others.
struct ReductionCall {
  ReductionCall() = default;
  // `root`: 0 if the reduction has none.
  ReductionCall(ReductionKind kind_in, const ReductionOperator& operation_in, int root_in = 0);

  ReductionKind kind = ReductionKind::kReduce;
  std::int32_t root = 0;
  // The number of a predefined operator. Of one of the program: whether it commutes, as 1 or 0. Its function has another address in each
  // process.
  std::uint32_t operation = 0;

  friend bool operator==(const ReductionCall&, const ReductionCall&) = default;
};

// Compares, and then does the work. Throws TransferFailed with MPI_ERR_NOT_SAME, at all processes, if their calls differ.
runtime::Task<> reduce_checked(CollectiveContext context, ReductionCall mine, runtime::Task<> work);

}  // namespace weft::mpi
