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
  const std::vector<Candidate> candidates = {{"greedy_refine"}, {"none"}};
  auto comparisons = compare(snapshot, candidates);
  ASSERT_TRUE(comparisons.ok());
  ASSERT_EQ(comparisons->size(), 2U);
  EXPECT_EQ((*comparisons)[0].summary.moves, outcome("greedy_refine", snapshot).moves);
  EXPECT_LE((*comparisons)[0].summary.imbalance_after, 0.05);
  EXPECT_EQ((*comparisons)[1].summary.moves, 0U);
  EXPECT_EQ((*comparisons)[1].summary.imbalance_after, (*comparisons)[1].summary.imbalance_before);
}

TEST(Comparison, RefusesUnknownNamesAndInvalidSnapshots) {
  const std::vector<Candidate> candidates = {{"greedy"}, {"best"}};
  EXPECT_EQ(compare(ramp(2, 2, 2), candidates).status().code(), base::StatusCode::kInvalidArgument);
  Snapshot snapshot = ramp(2, 2, 2);
  snapshot.objects[0].pe = 2;
  EXPECT_EQ(compare(snapshot, {}).status().code(), base::StatusCode::kInvalidArgument);
}

TEST(Comparison, TakesStrategiesThatNoTableKnowsAndChecksTheirPlacements) {
  const Snapshot snapshot = ramp(2, 2, 2);
  const auto make = [](const StrategyOptions& options) {
    return std::move(make_strategy("rotate", options)).value();
  };
  auto comparisons = compare(snapshot, std::vector<Candidate>{{"mine", make}});
  ASSERT_TRUE(comparisons.ok());
  EXPECT_EQ((*comparisons)[0].strategy, "mine");
  EXPECT_EQ((*comparisons)[0].summary.moves, 4U);

  struct Wrong final : Strategy {
    std::string_view name() const override { return "wrong"; }
    Placement place(const Snapshot&) override { return {0, 1, 2, 0}; }
  };
  const auto make_wrong = [](const StrategyOptions&) { return std::make_unique<Wrong>(); };
  const auto wrong = compare(snapshot, std::vector<Candidate>{{"wrong", make_wrong}});
  EXPECT_EQ(
      wrong.status().message(),
      "the load-balancing strategy 'wrong' is wrong: a placement puts object 2 of collection 1 on PE 2; "
      "expected 0 to 1");
}

}  // namespace
}  // namespace weft::balance
