// All-gather of a team. The engine carries it out (src/collective).
//
// Values of one size take one call. Else the ranks first exchange heads of 128 bytes: the size of a value and its first bytes, which is
// all of a small value. Then they exchange the values, large ones in pieces. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/pgas/team.h"
#include "weft/runtime/future.h"

#include "models/pgas/team/team_state.h"

namespace weft::pgas {

// Each starts the collective of this rank, and sets `result` to the packed vector of all values, in the order of ranks.
void start_gather(TeamState& team, const PackedValue& mine, std::uint64_t type, runtime::FutureState& result);
// Of values that are equally large on all ranks, up to Team::kMostFixedGatherBytes.
void start_fixed_gather(TeamState& team, std::span<const std::byte> mine, std::uint64_t type,
                        runtime::FutureState& result);

}  // namespace weft::pgas
