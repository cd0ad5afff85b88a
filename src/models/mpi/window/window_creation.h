// Making windows: the processes tell each other where their memory is.
//
// Threads: the PE's.
#pragma once

#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/window/window.h"

namespace weft::mpi {

// Collective. `memory.base` is given for MPI_WIN_FLAVOR_CREATE alone; it is found for the flavors that allocate. `is_contiguous`: of
// MPI_WIN_FLAVOR_SHARED, the memory of all ranks is one range in their order. Throws TransferFailed with the error class of mpi.h on
// all processes if one fails: MPI_ERR_NO_MEM, MPI_ERR_RMA_SHARED.
runtime::Task<Ref<Window>> create_window(Ref<Communicator> parent, WindowMemory memory, bool is_contiguous,
                                         Ref<ErrorHandler> handler);

}  // namespace weft::mpi
