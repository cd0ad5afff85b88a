// The collectives of a team that the engine carries out (src/collective): barriers, and those of data whose size all ranks know, if
// no function of the program takes part.
//
// A call is one object, which sets the future and frees itself when it is over, in the arrival of the last message. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/memory/buffer.h"
#include "weft/pgas/element_combine.h"
#include "weft/runtime/future.h"
#include "weft/runtime/reduction.h"

#include "models/pgas/team/team_state.h"

namespace weft::pgas {

runtime::Future<> start_barrier(TeamState& team);
// Returns when all ranks have arrived, or false if the job ends first. REQUIRES: Scheduler::may_progress(), or a team of one.
bool wait_in_barrier(TeamState& team);

// For Team::start_fixed_broadcast() and Team::start_fixed_reduce().
void start_fixed_broadcast(TeamState& team, std::span<const std::byte> mine, int root, std::uint64_t type,
                           runtime::FutureState& result);
void start_fixed_reduce(TeamState& team, std::span<const std::byte> mine, const ElementCombine& combine,
                        runtime::Reducer reducer, int root, runtime::FutureState& result);

// Buffers. All ranks take the same way, whichever memory they have: device memory is copied to the host and back.
bool may_broadcast_by_engine(const TeamState& team, std::size_t size_bytes);
bool may_reduce_by_engine(const TeamState& team, runtime::Reducer reducer, int root, std::size_t size_bytes);
// REQUIRES: these. `values` has its place.
runtime::Future<> broadcast_by_engine(TeamState& team, const memory::Buffer& values, std::uint64_t type,
                                      int root);
// To all ranks if root < 0.
runtime::Future<> reduce_by_engine(TeamState& team, const memory::Buffer& values,
                                   const ElementCombine& combine, runtime::Reducer reducer, int root);

}  // namespace weft::pgas
