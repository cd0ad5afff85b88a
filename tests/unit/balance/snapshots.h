// Snapshots for the tests of load balancing.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/balance/snapshot.h"

#include "balance/strategy_table.h"
#include "balance/summary.h"

namespace weft::balance {

inline Snapshot empty_snapshot(int num_pes) {
  Snapshot snapshot;
  snapshot.num_pes = num_pes;
  snapshot.background_load_s.assign(static_cast<std::size_t>(num_pes), 0.0);
  return snapshot;
}

inline void add_object(Snapshot& snapshot, int pe, double load_s, bool can_move = true) {
  snapshot.objects.push_back({1, snapshot.objects.size(), pe, load_s, 100, can_move});
}

// Objects in blocks, as arrays are placed: object i is on PE i / objects_per_pe.
inline Snapshot blocks(int num_pes, int objects_per_pe, auto load_of_object) {
  Snapshot snapshot = empty_snapshot(num_pes);
  for (int i = 0; i < num_pes * objects_per_pe; ++i)
    add_object(snapshot, i / objects_per_pe, load_of_object(i));
  return snapshot;
}

// Loads from 1 for the first object to `ratio` for the last one.
inline Snapshot ramp(int num_pes, int objects_per_pe, double ratio) {
  const double last = num_pes * objects_per_pe - 1;
  return blocks(num_pes, objects_per_pe, [=](int i) { return 1 + (ratio - 1) * i / last; });
}

// Each object of a line exchanges bytes with the next one.
inline void connect_line(Snapshot& snapshot, std::uint64_t bytes) {
  for (std::uint32_t i = 1; i < snapshot.objects.size(); ++i) snapshot.edges.push_back({i - 1, i, 1, bytes});
}

struct RandomShape {
  bool fixed_objects = false;
  bool background = false;
  bool speeds = false;
};

// Loads of a skewed distribution, some 0; objects anywhere.
inline Snapshot random_snapshot(std::uint64_t seed, RandomShape shape = {}) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  const auto real = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Snapshot snapshot = empty_snapshot(static_cast<int>(1 + below(17)));
  const auto num_pes = static_cast<std::uint64_t>(snapshot.num_pes);
  for (double& background_s : snapshot.background_load_s) background_s = shape.background ? 5 * real() : 0;
  for (std::uint64_t pe = 0; shape.speeds && pe < num_pes; ++pe) {
    snapshot.pe_speed.push_back(static_cast<double>(1 + below(3)));
  }
  const std::uint64_t num_objects = below(300);
  for (std::uint64_t i = 0; i < num_objects; ++i) {
    const double load_s = below(10) == 0 ? 0 : std::exp(3 * real());
    add_object(snapshot, static_cast<int>(below(num_pes)), load_s, !shape.fixed_objects || below(4) != 0);
  }
  for (std::uint64_t i = 0; num_objects > 0 && i < 2 * num_objects; ++i) {
    snapshot.edges.push_back({static_cast<std::uint32_t>(below(num_objects)),
                              static_cast<std::uint32_t>(below(num_objects)), 1, below(1000)});
  }
  return snapshot;
}

inline Placement place(std::string_view strategy, const Snapshot& snapshot,
                       const StrategyOptions& options = {}) {
  auto made = make_strategy(strategy, options);
  if (!made.ok()) {
    ADD_FAILURE() << made.status().to_string();
    return present_placement(snapshot);
  }
  return (*made)->place(snapshot);
}

inline Summary outcome(std::string_view strategy, const Snapshot& snapshot) {
  return summarize(snapshot, place(strategy, snapshot));
}

}  // namespace weft::balance
