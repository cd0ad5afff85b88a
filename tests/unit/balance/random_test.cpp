// The strategies that exist for tests: random and rotate.
#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

TEST(Random, TheSeedDecidesAndAStepContinuesTheSequence) {
  const Snapshot snapshot = ramp(8, 64, 10);
  EXPECT_EQ(place("random", snapshot, {.seed = 7}), place("random", snapshot, {.seed = 7}));
  EXPECT_NE(place("random", snapshot, {.seed = 7}), place("random", snapshot, {.seed = 8}));
  auto strategy = make_strategy("random");
  ASSERT_TRUE(strategy.ok());
  const Placement first = (*strategy)->place(snapshot);
  EXPECT_NE(first, (*strategy)->place(snapshot));
}

// The expected PEs come from another implementation of mt19937_64, from its published recurrence.
TEST(Random, DrawsTheSamePesEverywhere) {
  EXPECT_EQ(place("random", blocks(4, 2, [](int) { return 1; }), {.seed = 1}),
            (Placement{0, 0, 1, 0, 1, 3, 1, 0}));
}

TEST(Random, EveryPeGetsItsShare) {
  std::vector<int> counts(8);
  for (const int pe : place("random", ramp(8, 1000, 10))) ++counts[static_cast<std::size_t>(pe)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(Rotate, EveryObjectGoesToTheNextPe) {
  Snapshot snapshot = blocks(3, 2, [](int) { return 1; });
  snapshot.objects[1].can_move = false;
  EXPECT_EQ(place("rotate", snapshot), (Placement{1, 0, 2, 2, 0, 0}));
}

}  // namespace
}  // namespace weft::balance
