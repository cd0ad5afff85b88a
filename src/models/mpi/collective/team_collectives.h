// Collectives of one group whose members share PEs: the members on a PE work together, and one of them takes part in the exchange
// between PEs. A circle without a LocalTeam gets the collectives of data_movement.h and reductions.h.
#pragma once

#include <cstdint>

#include "weft/runtime/task.h"

#include "models/mpi/collective/reductions.h"
#include "models/mpi/communicators/circle.h"
#include "models/mpi/p2p/data_view.h"

namespace weft::mpi {

// The circle of the leaders, one for each PE. `context`: of a communicator's collectives.
Circle leaders_of(const LocalTeam& team, std::uint64_t context, int tag);

runtime::Task<> barrier_in_teams(Circle circle);
runtime::Task<> broadcast_in_teams(Circle circle, int root, DataView data);
// `out` at the root alone.
runtime::Task<> reduce_in_teams(Circle circle, int root, Reduction what, DataView in, DataView out);
runtime::Task<> reduce_all_in_teams(Circle circle, Reduction what, DataView in, DataView out);

}  // namespace weft::mpi
