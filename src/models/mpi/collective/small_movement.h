// Collectives that move few bytes, in rounds: a process passes on what it has got, packed into one message, so that P processes need
// log2(P) rounds where each message by itself needs P - 1. The bytes of a part travel several times, so this is for small parts.
//
// All parts lie where and as they like; between the rounds their bytes are packed in host memory. A message of another size than this
// process expects is an error; then the others that wait for its bytes fail too. All but allgather_small() throw it as TransferFailed.
//
// Sources of the sizes: MPICH's defaults, see Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
// MPICH" (2005). They were not measured here on more than two cores.
#pragma once

#include <cstddef>

#include "weft/runtime/task.h"

#include "models/mpi/collective/transfers.h"
#include "models/mpi/communicators/collective_context.h"

namespace weft::mpi {

// The choice is a function of what all processes of the context know.
// `total_bytes`: of all parts together. REQUIRES: all processes know the sizes of all parts.
bool is_small_allgather(int num_processes, std::size_t total_bytes);
// `part_bytes`: of one part. REQUIRES: all parts of all processes have this size.
bool is_small_alltoall(int num_processes, std::size_t part_bytes);
bool is_small_gather(int num_processes, std::size_t part_bytes);

// The transfers keep the error.
runtime::Task<> allgather_small(Transfers& transfers, OwnView mine, Views parts);
// REQUIRES from here on: all parts of all processes have the same size. `out` and `in` may be the same memory.
runtime::Task<> alltoall_small(CollectiveContext context, Views out, Views in);
// `parts` at the root alone.
runtime::Task<> gather_small(CollectiveContext context, int root, OwnView mine, Views parts,
                             std::size_t part_bytes);
runtime::Task<> scatter_small(CollectiveContext context, int root, Views parts, OwnView mine,
                              std::size_t part_bytes);

}  // namespace weft::mpi
