#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

TEST(Refine, MovesOneObjectIfOneIsEnough) {
  Snapshot snapshot = empty_snapshot(3);
  for (const int pe : {0, 0, 0, 0, 1, 1, 1, 2, 2}) add_object(snapshot, pe, 1);
  const Placement placement = place("refine", snapshot);
  EXPECT_EQ(summarize(snapshot, placement).moves, 1U);
  EXPECT_EQ(summarize(snapshot, placement).max_after_s, 3);
}

TEST(Refine, TakesTheSmallestObjectThatIsEnough) {
  Snapshot snapshot = empty_snapshot(2);
  for (const double load : {5.0, 2.0, 1.0, 0.25}) add_object(snapshot, 0, load);
  add_object(snapshot, 1, 4.25);
  // 8.25 and 4.25: 2 is enough for the average of 6.25, 1 is not.
  EXPECT_EQ(place("refine", snapshot), (Placement{0, 1, 0, 0, 1}));
}

TEST(Refine, TakesObjectsFromOverloadedPesOnlyAndFillsNoneBeyondTheLimit) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    // PEs differ by up to a factor of 3, and each object is far smaller than the tolerance.
    const Snapshot snapshot = blocks(8, 300, [&random](int i) {
      return static_cast<double>((1 + i / 300 % 3) * static_cast<int>(1 + random() % 10));
    });
    const Placement placement = place("refine", snapshot);
    const std::vector<double> before = pe_times_s(snapshot, present_placement(snapshot));
    const double limit_s = average(before) * (1 + StrategyOptions().tolerance);
    EXPECT_LE(maximum(pe_times_s(snapshot, placement)), limit_s + 1e-9);
    for (std::size_t i = 0; i < placement.size(); ++i) {
      const int pe = snapshot.objects[i].pe;
      if (placement[i] != pe) {
        EXPECT_GT(before[static_cast<std::size_t>(pe)], limit_s) << "object " << i;
      }
    }
  }
}

TEST(Refine, MovesFewerObjectsThanGreedyRefine) {
  const Snapshot snapshot = ramp(8, 64, 10);
  EXPECT_LE(outcome("refine", snapshot).moves, outcome("greedy_refine", snapshot).moves);
}

TEST(Refine, LowersAMaximumThatCannotComeWithinTheTolerance) {
  Snapshot snapshot = empty_snapshot(2);
  for (int i = 0; i < 5; ++i) add_object(snapshot, 0, 1);
  // 2.5 each is not possible; 3 and 2 are.
  const Summary summary = outcome("refine", snapshot);
  EXPECT_EQ(summary.max_after_s, 3);
  EXPECT_EQ(summary.moves, 2U);
}

TEST(Refine, DoesNotExchangeOneMaximumForAnother) {
  Snapshot snapshot = empty_snapshot(2);
  add_object(snapshot, 0, 4);
  EXPECT_EQ(outcome("refine", snapshot).moves, 0U);
}

TEST(Refine, APeWhoseLoadCannotMoveDoesNotKeepTheOthersUneven) {
  Snapshot snapshot = ramp(4, 16, 10);
  snapshot.background_load_s[0] = 100;
  // PE 0 takes 100 s in any case besides its own objects, which can go. The others share the rest.
  const Summary summary = outcome("refine", snapshot);
  EXPECT_LE(summary.max_after_s, 116);
  EXPECT_LT(summary.max_after_s, summary.max_before_s);
}

}  // namespace
}  // namespace weft::balance
