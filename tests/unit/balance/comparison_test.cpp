#include "balance/comparison.h"

#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

TEST(Comparison, NoNamesMeanAllStrategies) {
  auto comparisons = compare(ramp(4, 16, 10), {});
  ASSERT_TRUE(comparisons.ok());
  ASSERT_EQ(comparisons->size(), strategy_table().size());
  for (std::size_t i = 0; i < comparisons->size(); ++i) {
    EXPECT_EQ((*comparisons)[i].strategy, strategy_table()[i].name);
    EXPECT_GE((*comparisons)[i].time_ms, 0);
  }
}

TEST(Comparison, HasTheSummaryOfEachName) {
  const Snapshot snapshot = ramp(4, 16, 10);
  const std::vector<std::string> names = {"greedy_refine", "none"};
  auto comparisons = compare(snapshot, names);
  ASSERT_TRUE(comparisons.ok());
  ASSERT_EQ(comparisons->size(), 2U);
  EXPECT_EQ((*comparisons)[0].summary.moves, outcome("greedy_refine", snapshot).moves);
  EXPECT_LE((*comparisons)[0].summary.imbalance_after, 0.05);
  EXPECT_EQ((*comparisons)[1].summary.moves, 0U);
  EXPECT_EQ((*comparisons)[1].summary.imbalance_after, (*comparisons)[1].summary.imbalance_before);
}

TEST(Comparison, RefusesUnknownNamesAndInvalidSnapshots) {
  const std::vector<std::string> names = {"greedy", "best"};
  EXPECT_EQ(compare(ramp(2, 2, 2), names).status().code(), base::StatusCode::kInvalidArgument);
  Snapshot snapshot = ramp(2, 2, 2);
  snapshot.objects[0].pe = 2;
  EXPECT_EQ(compare(snapshot, {}).status().code(), base::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::balance
