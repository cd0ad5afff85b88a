#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

TEST(GreedyRefine, TheMaximumIsWithinTheToleranceOfGreedys) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Snapshot snapshot = random_snapshot(
        seed, {.fixed_objects = seed % 2 == 0, .background = seed % 3 == 0, .speeds = seed % 5 == 0});
    const double greedy_s = outcome("greedy", snapshot).max_after_s;
    EXPECT_LE(outcome("greedy_refine", snapshot).max_after_s,
              greedy_s * (1 + StrategyOptions().tolerance) + 1e-9)
        << "seed " << seed;
  }
}

TEST(GreedyRefine, MovesFewerObjectsThanGreedy) {
  std::size_t greedy_moves = 0;
  std::size_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Snapshot snapshot = random_snapshot(seed);
    greedy_moves += outcome("greedy", snapshot).moves;
    moves += outcome("greedy_refine", snapshot).moves;
  }
  EXPECT_LT(moves, greedy_moves / 2);
}

TEST(GreedyRefine, MovesNothingIfTheObjectsAreWhereGreedyIsAsGood) {
  Snapshot snapshot = blocks(8, 16, [](int i) { return 1 + i % 16; });
  for (ObjectLoad& object : snapshot.objects) object.pe = 7 - object.pe;
  EXPECT_GT(outcome("greedy", snapshot).moves, 0U);
  EXPECT_EQ(outcome("greedy_refine", snapshot).moves, 0U);
}

TEST(GreedyRefine, ASecondStepMovesNothing) {
  Snapshot snapshot = ramp(8, 16, 10);
  const Placement first = place("greedy_refine", snapshot);
  EXPECT_NE(first, present_placement(snapshot));
  for (std::size_t i = 0; i < first.size(); ++i) snapshot.objects[i].pe = first[i];
  EXPECT_EQ(place("greedy_refine", snapshot), first);
}

// A pass in which much stays can end above the limit. Then less may stay, in the end nothing.
TEST(GreedyRefine, WithoutToleranceItIsAsGoodAsGreedy) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Snapshot snapshot = random_snapshot(seed);
    const double greedy_s = outcome("greedy", snapshot).max_after_s;
    const Placement placement = place("greedy_refine", snapshot, {.tolerance = 0});
    EXPECT_LE(summarize(snapshot, placement).max_after_s, greedy_s + 1e-9) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::balance
