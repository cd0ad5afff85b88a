// The start and the end of MPI in this process.
#pragma once

#include "models/mpi/error.h"

namespace weft::mpi {

enum class Starter { kWorld, kSession };

// Starts MPI unless it runs. MPI_Init and each session do so once.
Error start_mpi(Starter starter);
// Undoes it. The job ends with MPI_Finalize, or, if a program has had sessions, with the process.
Error end_mpi(Starter starter);

}  // namespace weft::mpi
