// Collectives of one group whose members share PEs: the members on a PE work together, and one of them takes part in the exchange
// between PEs. A context without a LocalTeam gets the collectives of data_movement.h and reductions.h.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/runtime/task.h"

#include "models/mpi/collective/reductions.h"
#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/p2p/data_view.h"

namespace weft::mpi {

// The context of the leaders, one for each PE. `context_id`: that of a communicator's collectives.
// `starts`: of a persistent operation.
CollectiveContext leaders_of(LocalTeam& team, std::uint64_t context_id, int tag,
                             std::shared_ptr<const std::uint32_t> starts = nullptr);

runtime::Task<> barrier_in_teams(CollectiveContext context);
runtime::Task<> broadcast_in_teams(CollectiveContext context, int root, DataView data);
// `out` at the root alone.
runtime::Task<> reduce_in_teams(CollectiveContext context, int root, Reduction what, DataView in,
                                DataView out);
runtime::Task<> allreduce_in_teams(CollectiveContext context, Reduction what, DataView in, DataView out);

}  // namespace weft::mpi
