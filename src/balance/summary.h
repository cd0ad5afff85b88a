// Summary: the effect of a placement on a job in numbers that people compare (imbalance, moves, bytes between PEs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/balance/snapshot.h"

namespace weft::balance {

struct Summary {
  double average_before_s = 0;
  double average_after_s = 0;
  double max_before_s = 0;
  double max_after_s = 0;
  // max / average - 1: the part of the average time by which the most loaded PE keeps the others waiting. 0 without load.
  double imbalance_before = 0;
  double imbalance_after = 0;
  std::size_t moves = 0;
  std::uint64_t bytes_moved = 0;
  // Bytes of edges between objects on different PEs.
  std::uint64_t external_bytes_before = 0;
  std::uint64_t external_bytes_after = 0;
};

// The time of each PE under a placement. REQUIRES: both pass check().
std::vector<double> pe_times_s(const Snapshot& snapshot, const Placement& placement);

// REQUIRES: not empty.
double average(std::span<const double> values);
double maximum(std::span<const double> values);
double imbalance(std::span<const double> pe_times_s);

std::uint64_t external_bytes(const Snapshot& snapshot, const Placement& placement);

// REQUIRES: check(snapshot).ok() and check(snapshot, placement).ok().
Summary summarize(const Snapshot& snapshot, const Placement& placement);

}  // namespace weft::balance
