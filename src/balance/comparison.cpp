#include "balance/comparison.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "base/format.h"

namespace weft::balance {
namespace {

base::Result<std::unique_ptr<Strategy>> make(const Candidate& candidate, const StrategyOptions& options) {
  if (candidate.make == nullptr) return make_strategy(candidate.name, options);
  return candidate.make(options);
}

base::Result<Comparison> compare_one(const Snapshot& snapshot, const Candidate& candidate,
                                     const StrategyOptions& options) {
  Comparison comparison;
  comparison.strategy = candidate.name;
  Placement placement;
  std::array<double, kComparisonRuns> times_ms{};
  for (double& time_ms : times_ms) {
    auto strategy = make(candidate, options);
    if (!strategy.ok()) return strategy.status();
    const auto start = std::chrono::steady_clock::now();
    placement = (*strategy)->place(snapshot);
    time_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (base::Status status = check(snapshot, placement); !status.ok()) {
      return base::Status(status.code(), base::format("the load-balancing strategy '{}' is wrong: {}",
                                                      candidate.name, status.message()));
    }
  }
  std::sort(times_ms.begin(), times_ms.end());
  comparison.time_ms = times_ms[times_ms.size() / 2];
  comparison.summary = summarize(snapshot, placement);
  return comparison;
}

}  // namespace

base::Result<std::vector<Comparison>> compare(const Snapshot& snapshot, std::span<const Candidate> candidates,
                                              const StrategyOptions& options) {
  if (base::Status status = check(snapshot); !status.ok()) return status;
  std::vector<Candidate> chosen(candidates.begin(), candidates.end());
  if (chosen.empty()) {
    for (const StrategyEntry& entry : strategy_table()) chosen.push_back({std::string(entry.name)});
  }
  std::vector<Comparison> comparisons;
  for (const Candidate& candidate : chosen) {
    auto comparison = compare_one(snapshot, candidate, options);
    if (!comparison.ok()) return comparison.status();
    comparisons.push_back(std::move(*comparison));
  }
  return comparisons;
}

}  // namespace weft::balance
