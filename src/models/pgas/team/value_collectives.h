// Broadcasts and reductions of packed values. All-gather: gather_collectives.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/pgas/team.h"
#include "weft/runtime/future.h"
#include "weft/runtime/reduction.h"

#include "models/pgas/team/team_state.h"

namespace weft::pgas {

// Each starts the collective of this rank, and sets `result`, see Team::start_broadcast() and Team::start_reduce().
void start_broadcast(TeamState& team, const PackedValue& mine, int root, std::uint64_t type,
                     runtime::FutureState& result);
void start_reduce(TeamState& team, const PackedValue& mine, runtime::Reducer reducer,
                  const runtime::Combiner* combiner, int root, std::uint64_t type,
                  runtime::FutureState& result, bool is_optional);

// Sets a result from its packed bytes. If they do not unpack, or there is no memory, it is that error.
void set_packed_result(runtime::FutureState& result, std::span<const std::byte> bytes);

}  // namespace weft::pgas
