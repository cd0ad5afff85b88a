// Hints of communicators that Weft reads, and what the info objects of communicators, windows and sessions tell.
#pragma once

#include <string_view>

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

// Replaces the value of the key, or adds it.
void set_hint(Info::Pairs& pairs, std::string_view key, std::string_view value);

// The hints with mpi_memory_alloc_kinds: the kinds of memory that programs may pass. That of CUDA is among them if this process can use
// a GPU. REQUIRES: MPI runs.
Info::Pairs with_memory_kinds(Info::Pairs hints);

}  // namespace weft::mpi
