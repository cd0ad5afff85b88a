// Strategies beside one another on one snapshot, offline: what each would do, and how long it takes to decide.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/base/status.h"

#include "balance/snapshot.h"
#include "balance/strategy.h"
#include "balance/summary.h"

namespace weft::balance {

struct Comparison {
  std::string strategy;
  Summary summary;
  // The decision alone, as wall-clock time: the median of kComparisonRuns runs of place() on new strategies.
  double time_ms = 0;
};

inline constexpr int kComparisonRuns = 5;

// One comparison for each name, in their order. No names mean all strategies. kInvalidArgument for an invalid snapshot or an
// unknown name.
base::Result<std::vector<Comparison>> compare(const Snapshot& snapshot, std::span<const std::string> names,
                                              const StrategyOptions& options = {});

}  // namespace weft::balance
