// One PE's part of the diffusion strategy, with only what that PE knows by itself or from one neighbour.
//
// A round pairs PEs. The two PEs of a pair tell each other their times and speeds. The one with the longer time gives objects
// to the other one, so that both come close to the same time. It chooses objects that talk to objects of the other PE, then
// objects that talk to those already chosen: what it gives is one connected piece, and few edges between the PEs are new.
//
// Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "balance/distributed_strategy.h"

namespace weft::balance {

// The number of rounds after which each PE has been paired with each of its neighbours once.
int rounds_of_sweep(int num_pes);

// The PE that `pe` is paired with in a round of a sweep; none if it rests. Pairs agree: the partner's partner is `pe`.
// PEs whose numbers differ in one bit are neighbours, and PEs whose numbers differ by 1. The highest bit comes first: what has to
// cross the job then goes in few large pieces, and PEs near to one another even out the rest. In the opposite order 30 % more
// objects move (docs/decisions/load-balancing.md).
// REQUIRES: 0 <= round < rounds_of_sweep(num_pes), 0 <= pe < num_pes.
std::optional<int> partner_in_round(int pe, int round, int num_pes);

// How much load the PE would give, as load_s of objects: 0 if its time is not longer than the neighbour's, or if it exceeds
// the time that both would have after an exact exchange by no more than the tolerance.
double load_to_give(const PeState& own, const PeState& neighbour, double tolerance);

// The objects that the PE gives to its neighbour: numbers of OwnObject::object. The longer time of the two never grows.
// REQUIRES: `objects` are all objects of this PE, so that an edge to an own object has its counterpart.
std::vector<std::uint64_t> choose_objects(const PeState& own, const std::vector<OwnObject>& objects,
                                          const PeState& neighbour, double tolerance);

}  // namespace weft::balance
