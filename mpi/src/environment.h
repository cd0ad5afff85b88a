// The start and the end of MPI in this process.
#pragma once

#include "hosted_ranks.h"
#include "models/mpi/error.h"

namespace weft::mpi {

enum class Starter { kWorld, kSession };

// Starts MPI unless it runs. MPI_Init and each session do so once.
Error start_mpi(Starter starter);
// Undoes it. The job ends with MPI_Finalize, or, if a program has had sessions, with the process.
Error end_mpi(Starter starter);

// MPI_THREAD_SERIALIZED, or MPI_THREAD_FUNNELED for ranks that share a process: only the thread that runs them may call MPI.
int thread_level();

// How MPI takes part in the life of the ranks of a process.
HostedRanks::Hooks hosted_rank_hooks();

}  // namespace weft::mpi
