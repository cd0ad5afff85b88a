// The memory of all ranks, protected in the memory of the job as the state of chares, one for each rank (docs/decisions/mpi-recovery.md).
//
// Threads: the PE's.
#pragma once

#include <string>

#include "weft/runtime/runtime.h"
#include "weft/runtime/task.h"

#include "models/mpi/p2p/rank_map.h"

namespace weft::mpi {

// On one PE. REQUIRES: all ranks of the job have departed and stay so until it returns. Returns why the state is not protected; empty if it
// is. Does not return if the job gets another number of PEs.
runtime::Task<std::string> protect_ranks(runtime::Runtime& runtime, RankMap map);

// On one PE, in a job that has begun again, whose ranks have not begun. The ranks of the protected state come to their places on all PEs, see
// HostedRanks::expect_restored(). Returns false, without effect, if nothing was protected. Throws Error if the state is lost.
runtime::Task<bool> recover_ranks(runtime::Runtime& runtime);

}  // namespace weft::mpi
