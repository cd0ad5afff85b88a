// The memory of a target as runs: how the origin names it, and the view that the target makes of it.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/mpi/datatype/datatype.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {

// The runs of `count` elements at a displacement in bytes; if they are more than `most`, `most` + 1 of them.
// REQUIRES: type.packed_size(count).
std::vector<WindowRun> runs_of(const Datatype& type, MPI_Count count, MPI_Aint displacement_bytes,
                               std::size_t most = SIZE_MAX);

// The view of the runs at `base`, without a place. REQUIRES: check_runs() has accepted them, and the memory is there.
DataView runs_view(std::byte* base, std::vector<WindowRun> runs);

}  // namespace weft::mpi
