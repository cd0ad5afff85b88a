// TeamState: the state of one team on a PE, with its members and its collective operations. A Team points to one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/pgas/world.h"

#include "models/pgas/team/barrier.h"
#include "models/pgas/team/exchange.h"
#include "models/pgas/team/members.h"
#include "models/pgas/team/object_table.h"

namespace weft::pgas {

class TeamTable;

// The handlers of the messages of all teams.
struct TeamHandlers {
  runtime::HandlerId part = 0;
  runtime::HandlerId barrier = 0;
  runtime::HandlerId call = 0;
};

class TeamState {
 public:
  TeamState(TeamTable& table_in, runtime::Runtime& runtime_in, const TeamHandlers& handlers, TeamId id,
            std::vector<int> pes)
      : table(table_in),
        runtime(runtime_in),
        call_handler(handlers.call),
        members(id, std::move(pes), runtime_in.pe(), runtime_in.host_groups()),
        exchange(runtime_in, handlers.part, members),
        barrier(runtime_in, handlers.barrier, members),
        objects(runtime_in) {}
  TeamState(const TeamState&) = delete;
  TeamState& operator=(const TeamState&) = delete;

  // This rank begins its next collective that is no barrier, see Exchange::begin().
  std::uint64_t begin(const CollectiveType& type) {
    barrier.begin_other(name_of(type.kind));
    return exchange.begin(type);
  }

  // How many collectives this rank has begun, barriers included. It is the same on all ranks that have come equally far.
  std::uint64_t num_begun() const { return barrier.num_entered() + exchange.num_begun(); }

  TeamTable& table;
  runtime::Runtime& runtime;
  const runtime::HandlerId call_handler;
  const Members members;
  Exchange exchange;
  Barrier barrier;
  ObjectTable objects;
};

}  // namespace weft::pgas
