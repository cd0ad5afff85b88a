// Communicators with streams (MPIX_Stream_comm_create), and their end.
#pragma once

#include "weft/mpi/mpi.h"
#include "weft/mpi/weft_mpi_stream.h"

#include "entry/handles.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/process.h"

namespace weft::mpi {

// Waits until the stream has done what the communicator has queued, and gives the memory back. All ranks of the communicator call it.
// REQUIRES: it has a stream.
Error close_streams(Communicator& communicator);

// At the end of MPI, for communicators that the program has not freed: waits until their streams have done what is queued, or until the
// time ends after which a device counts as hanging. REQUIRES: no rank queues any more.
void wait_for_streams(Process& process);

}  // namespace weft::mpi
