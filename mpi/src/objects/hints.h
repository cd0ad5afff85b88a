// Hints of communicators that Weft reads.
#pragma once

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/objects/info.h"

namespace weft::mpi {

// The communicator has these hints from now on.
//
// weft_stream: a stream of a device, as a number. Transfers of device memory on the communicator come after the work that is
// queued on the stream when they start. "0": after nothing. The numbers are those of the CUDA array interface: a CUstream, or 1 for
// CUDA's legacy and 2 for its per-thread default stream.
//
// Errors: MPI_ERR_INFO_VALUE.
Error use_hints(Communicator& communicator, const Info::Pairs& hints);

}  // namespace weft::mpi
