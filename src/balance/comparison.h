// Strategies beside one another on one snapshot, offline: what each would do, and how long it takes to decide.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/balance/snapshot.h"
#include "weft/base/status.h"

#include "balance/strategy.h"
#include "balance/strategy_table.h"
#include "balance/summary.h"

namespace weft::balance {

struct Comparison {
  std::string strategy;
  Summary summary;
  // The decision alone, as wall-clock time: the median of kComparisonRuns runs of place() on new strategies.
  double time_ms = 0;
};

inline constexpr int kComparisonRuns = 5;

// A strategy to compare: one that is known by its name, or one that `make` makes and that no table knows.
struct Candidate {
  std::string name;
  StrategyMaker make = nullptr;
};

// One comparison for each candidate, in their order. No candidates mean all strategies of Weft. kInvalidArgument for an invalid
// snapshot, an unknown name or a placement that does not fit; the message names the strategy. Exceptions of a strategy pass.
base::Result<std::vector<Comparison>> compare(const Snapshot& snapshot, std::span<const Candidate> candidates,
                                              const StrategyOptions& options = {});

}  // namespace weft::balance
