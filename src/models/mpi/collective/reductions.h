// Collectives that combine data: reduce, all-reduce, reduce-scatter, scan. They throw TransferFailed, or an exception of the operator,
// after they have sent and received all messages that their peers wait for.
//
// Operators work on host memory. Data of devices is copied to host memory first, and results are copied back. The order of the
// operands is that of the ranks for operators that are not commutative.
#pragma once

#include <vector>

#include "weft/runtime/task.h"

#include "models/mpi/collective/data_movement.h"
#include "models/mpi/collective/operands.h"
#include "models/mpi/collective/transfers.h"

namespace weft::mpi {

// --- Of one group. `in` and `out` may be the same memory.
// `out` at the root alone.
runtime::Task<> reduce(CollectiveContext context, int root, Reduction what, DataView in, DataView out);
runtime::Task<> allreduce(CollectiveContext context, Reduction what, DataView in, DataView out);
// Process i gets counts[i] elements of the result. The sum of the counts is what.count.
runtime::Task<> reduce_and_scatter(CollectiveContext context, Reduction what, std::vector<MPI_Count> counts,
                                   DataView in, DataView out);
// Process i gets the combination of the processes 0 to i, or 0 to i - 1 if `exclusive`.
runtime::Task<> scan(CollectiveContext context, Reduction what, bool exclusive, DataView in, DataView out);

// --- As steps of a larger operation: its transfers keep the error, nothing is thrown.
runtime::Task<> reduce(Transfers& transfers, int root, Reduction what, DataView in, DataView out);
runtime::Task<> allreduce(Transfers& transfers, Reduction what, DataView in, DataView out);

// --- Of two groups: each gets the combination of the other one's data.
runtime::Task<> reduce_to_other(ContextPair contexts, int root, Reduction what, DataView in, DataView out);
runtime::Task<> allreduce_of_other(ContextPair contexts, Reduction what, DataView in, DataView out);
// `counts`: of the processes of the own group.
runtime::Task<> reduce_and_scatter_of_other(ContextPair contexts, Reduction what,
                                            std::vector<MPI_Count> counts, DataView in, DataView out);

}  // namespace weft::mpi
