#include "balance/summary.h"

#include <algorithm>
#include <numeric>

namespace weft::balance {

std::vector<double> pe_times_s(const Snapshot& snapshot, const Placement& placement) {
  std::vector<double> times = snapshot.background_load_s;
  for (std::size_t i = 0; i < placement.size(); ++i) {
    times[static_cast<std::size_t>(placement[i])] +=
        snapshot.objects[i].load_s / snapshot.speed(placement[i]);
  }
  return times;
}

double average(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double maximum(std::span<const double> values) { return *std::max_element(values.begin(), values.end()); }

double imbalance(std::span<const double> pe_times_s) {
  const double mean = average(pe_times_s);
  return mean > 0 ? maximum(pe_times_s) / mean - 1 : 0;
}

std::uint64_t external_bytes(const Snapshot& snapshot, const Placement& placement) {
  std::uint64_t bytes = 0;
  for (const CommunicationEdge& edge : snapshot.edges) {
    if (placement[edge.from] != placement[edge.to]) bytes += edge.bytes;
  }
  return bytes;
}

Summary summarize(const Snapshot& snapshot, const Placement& placement) {
  const Placement present = present_placement(snapshot);
  const std::vector<double> before = pe_times_s(snapshot, present);
  const std::vector<double> after = pe_times_s(snapshot, placement);
  Summary summary;
  summary.average_before_s = average(before);
  summary.average_after_s = average(after);
  summary.max_before_s = maximum(before);
  summary.max_after_s = maximum(after);
  summary.imbalance_before = imbalance(before);
  summary.imbalance_after = imbalance(after);
  for (std::size_t i = 0; i < placement.size(); ++i) {
    if (placement[i] == present[i]) continue;
    ++summary.moves;
    summary.bytes_moved += snapshot.objects[i].size_bytes;
  }
  summary.external_bytes_before = external_bytes(snapshot, present);
  summary.external_bytes_after = external_bytes(snapshot, placement);
  return summary;
}

}  // namespace weft::balance
