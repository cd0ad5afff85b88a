// TeamState: the state of one team on a PE, with its members and its collective operations. A Team points to one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/pgas/world.h"
#include "weft/runtime/runtime.h"

#include "collective/engine.h"
#include "models/pgas/team/call_watch.h"
#include "models/pgas/team/exchange.h"
#include "models/pgas/team/members.h"
#include "models/pgas/team/object_table.h"

namespace weft::pgas {

class TeamTable;

// The handlers of the messages of all teams.
struct TeamHandlers {
  runtime::HandlerId part = 0;
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
        group(runtime_in.model<collective::Engine>().group(
            collective::group_number(collective::Owner::kTeam, std::uint64_t{id.leader_pe} << 32 | id.number),
            members.pes(), members.rank())),
        exchange(runtime_in, handlers.part, members, group->inbox()),
        watch(runtime_in, group->inbox()),
        objects(runtime_in) {}
  TeamState(const TeamState&) = delete;
  TeamState& operator=(const TeamState&) = delete;

  // How many collectives this rank has begun. It is the same on all ranks that have come equally far.
  std::uint64_t num_begun() const { return exchange.num_begun(); }

  TeamTable& table;
  runtime::Runtime& runtime;
  const runtime::HandlerId call_handler;
  const Members members;
  const std::shared_ptr<collective::Group> group;
  Exchange exchange;
  CallWatch watch;
  ObjectTable objects;
};

}  // namespace weft::pgas
