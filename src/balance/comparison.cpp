#include "balance/comparison.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "balance/strategy_table.h"

namespace weft::balance {
namespace {

base::Result<Comparison> compare_one(const Snapshot& snapshot, const std::string& name,
                                     const StrategyOptions& options) {
  Comparison comparison;
  comparison.strategy = name;
  Placement placement;
  std::array<double, kComparisonRuns> times_ms{};
  for (double& time_ms : times_ms) {
    auto strategy = make_strategy(name, options);
    if (!strategy.ok()) return strategy.status();
    const auto start = std::chrono::steady_clock::now();
    placement = (*strategy)->place(snapshot);
    time_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  std::sort(times_ms.begin(), times_ms.end());
  comparison.time_ms = times_ms[times_ms.size() / 2];
  if (base::Status status = check(snapshot, placement); !status.ok()) return status;
  comparison.summary = summarize(snapshot, placement);
  return comparison;
}

}  // namespace

base::Result<std::vector<Comparison>> compare(const Snapshot& snapshot, std::span<const std::string> names,
                                              const StrategyOptions& options) {
  if (base::Status status = check(snapshot); !status.ok()) return status;
  std::vector<std::string> chosen(names.begin(), names.end());
  if (chosen.empty()) {
    for (const StrategyEntry& entry : strategy_table()) chosen.emplace_back(entry.name);
  }
  std::vector<Comparison> comparisons;
  for (const std::string& name : chosen) {
    auto comparison = compare_one(snapshot, name, options);
    if (!comparison.ok()) return comparison.status();
    comparisons.push_back(std::move(*comparison));
  }
  return comparisons;
}

}  // namespace weft::balance
