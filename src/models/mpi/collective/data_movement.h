// Collectives that move data: broadcast, gather, scatter, all-to-all, neighbourhoods. Each is one coroutine, which serves the blocking,
// the non-blocking and the persistent call. They throw TransferFailed.
//
// Views that are not significant at a process are empty.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/runtime/task.h"

#include "models/mpi/collective/transfers.h"
#include "models/mpi/communicators/communicator.h"

namespace weft::mpi {

using ContextPair = Communicator::ContextPair;

// --- Of one group
runtime::Task<> broadcast(CollectiveContext context, int root, DataView data);
// `parts` at the root alone.
runtime::Task<> gather(CollectiveContext context, int root, OwnView mine, Views parts);
runtime::Task<> scatter(CollectiveContext context, int root, Views parts, OwnView mine);
// All processes know the sizes of all parts.
runtime::Task<> allgather(CollectiveContext context, OwnView mine, Views parts);
// Process i gets out[i].
runtime::Task<> alltoall(CollectiveContext context, Views out, Views in);
// As alltoall(), with one set of buffers for both directions.
runtime::Task<> alltoall_in_place(CollectiveContext context, Views parts);
// The collectives for parts that have one size at all processes. Small parts take fewer messages (block_collectives.h).
runtime::Task<> gather_equal(CollectiveContext context, int root, OwnView mine, Views parts);
runtime::Task<> scatter_equal(CollectiveContext context, int root, Views parts, OwnView mine);
runtime::Task<> alltoall_equal(CollectiveContext context, Views out, Views in);
runtime::Task<> alltoall_equal_in_place(CollectiveContext context, Views parts);

// --- Of two groups. `root`: MPI_ROOT at the root, MPI_PROC_NULL at the others of its group, its rank in the other group.
runtime::Task<> barrier_of_two(ContextPair contexts);
runtime::Task<> broadcast_to_other(ContextPair contexts, int root, DataView data);
runtime::Task<> gather_from_other(ContextPair contexts, int root, DataView mine, Views parts);
runtime::Task<> scatter_to_other(ContextPair contexts, int root, Views parts, DataView mine);

// --- As steps of a larger operation: its transfers keep the error, nothing is thrown.
// `size_bytes`: of the data. It chooses the form, also for a process that has failed and has no memory for it.
runtime::Task<> broadcast(Transfers& transfers, int root, DataView data, std::size_t size_bytes);
runtime::Task<> scatter(Transfers& transfers, int root, Views parts, OwnView mine);
// `most_bytes`: of the largest part. It chooses the form, also for a process that has failed and has no memory for them.
runtime::Task<> allgather(Transfers& transfers, OwnView mine, Views parts, std::size_t most_bytes);

// --- With neighbours
struct NeighbourTransfers {
  // A process and the memory of its message, in the order in which messages of a pair of processes match.
  using Side = std::vector<std::pair<int, DataView>>;
  Side out;
  Side in;
};
runtime::Task<> exchange_with_neighbours(CollectiveContext context, NeighbourTransfers neighbours);

}  // namespace weft::mpi
