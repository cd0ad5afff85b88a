#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "snapshots.h"

namespace weft::balance {
namespace {

// The least possible maximum of few objects, by trying all placements.
double least_maximum(const Snapshot& snapshot) {
  const auto num_pes = static_cast<std::size_t>(snapshot.num_pes);
  const auto num_placements = static_cast<std::size_t>(
      std::pow(static_cast<double>(num_pes), static_cast<double>(snapshot.objects.size())) + 0.5);
  double best = 1e300;
  for (std::size_t code = 0; code < num_placements; ++code) {
    std::vector<double> times(num_pes);
    std::size_t rest = code;
    for (const ObjectLoad& object : snapshot.objects) {
      times[rest % num_pes] += object.load_s;
      rest /= num_pes;
    }
    best = std::min(best, maximum(times));
  }
  return best;
}

TEST(Greedy, TheMaximumIsWithinGrahamsBoundOfTheOptimum) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    Snapshot snapshot = empty_snapshot(2 + static_cast<int>(random() % 2));
    const std::size_t num_objects = 3 + random() % 7;
    for (std::size_t i = 0; i < num_objects; ++i) {
      add_object(snapshot, 0, static_cast<double>(1 + random() % 30));
    }
    const double bound = 4.0 / 3 - 1.0 / (3 * snapshot.num_pes);
    EXPECT_LE(outcome("greedy", snapshot).max_after_s, bound * least_maximum(snapshot) + 1e-9)
        << "seed " << seed;
  }
}

// Graham's example of the bound itself: loads 5 5 4 4 3 3 3 on 3 PEs take 11, and 9 is possible.
TEST(Greedy, MeetsGrahamsBoundWhereItIsTight) {
  Snapshot snapshot = empty_snapshot(3);
  for (const int load : {3, 5, 4, 3, 5, 3, 4}) add_object(snapshot, 0, load);
  EXPECT_EQ(least_maximum(snapshot), 9);
  EXPECT_EQ(outcome("greedy", snapshot).max_after_s, 11);
}

TEST(Greedy, PutsTheLargestObjectsOnDifferentPes) {
  Snapshot snapshot = empty_snapshot(3);
  for (const int load : {1, 9, 1, 8, 1, 7}) add_object(snapshot, 0, load);
  // 9, 8, 7 to PEs 0, 1, 2. Then 1 to PE 2 (7); PE 1 and 2 have 8, so 1 to PE 1; then 1 to PE 2.
  EXPECT_EQ(place("greedy", snapshot), (Placement{2, 0, 1, 1, 2, 2}));
}

TEST(Greedy, ALargeObjectGoesToAFastPeThatIsBusy) {
  Snapshot snapshot = empty_snapshot(2);
  snapshot.pe_speed = {1, 10};
  snapshot.background_load_s = {0, 1};
  add_object(snapshot, 0, 10);
  add_object(snapshot, 1, 0.5);
  // On PE 0 the object would take 10 s, on PE 1 it is done after 1 + 1 s. The small one takes 0.5 s on the idle PE.
  EXPECT_EQ(place("greedy", snapshot), (Placement{1, 0}));
}

}  // namespace
}  // namespace weft::balance
