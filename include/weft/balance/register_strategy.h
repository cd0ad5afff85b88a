// Load-balancing strategies of a program.
//
//     weft::balance::Placement heaviest_first(const weft::balance::Snapshot& snapshot) { ... }
//
//     int main(int argc, char** argv) {
//       weft::balance::register_strategy("heaviest_first", &heaviest_first);
//       return weft::run(argc, argv, start);
//     }
//
// `weft run --lb heaviest_first` (WEFT_LB) then chooses it. The job reads WEFT_LB when it starts, on every PE, so all PEs
// register before that.
//
// Threads: one thread at a time.
#pragma once

#include <functional>
#include <string_view>

#include "weft/balance/snapshot.h"

namespace weft::balance {

// Returns one PE for each object of the snapshot, in their order. Objects that cannot move stay: present_placement() is a
// start. It gets snapshots that pass check(snapshot). What it returns is checked, and the job ends if that is wrong; it also
// ends with an exception of the function. It runs on the PE that has made the collection, between entry methods.
using StrategyFunction = std::function<Placement(const Snapshot&)>;

// Whether a strategy reads Snapshot::edges. Jobs count the messages between elements only for one that does, because that costs
// time; else the edges are empty, unless the job records its loads.
enum class Communication : bool { kIgnored, kRead };

// Makes `function` the strategy `name` of this process. Throws Error(kInvalidArgument): the name is not 1 to 64 letters, digits
// and underscores, or begins with a digit; a strategy has this name; or the function is empty.
void register_strategy(std::string_view name, StrategyFunction function,
                       Communication communication = Communication::kIgnored);

}  // namespace weft::balance
