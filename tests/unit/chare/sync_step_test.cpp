#include "models/chare/sync_step.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "balance/strategy_table.h"

namespace weft::chare {
namespace {

constexpr std::uint64_t kCollection = 7;

std::unique_ptr<balance::Strategy> strategy(const char* name) {
  auto made = balance::make_strategy(name);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

std::string error_of(const base::Status& status) {
  EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(SyncStep, CollectsElementsOfAllPesInAnyOrder) {
  SyncStep step(kCollection, 3, 2);
  EXPECT_TRUE(step.add(1, std::vector<ReportedLoad>{{2, 0.5, 1}}).ok());
  EXPECT_FALSE(step.is_complete());
  EXPECT_TRUE(step.add(0, std::vector<ReportedLoad>{{1, 2, 0}, {0, 1, 1}}).ok());
  EXPECT_TRUE(step.is_complete());
  const auto none = strategy("none");
  ASSERT_TRUE(step.decide(*none).ok());
  EXPECT_TRUE(step.is_done());
  const balance::Snapshot& snapshot = step.snapshot();
  ASSERT_EQ(snapshot.objects.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(snapshot.objects[i].collection, kCollection);
    EXPECT_EQ(snapshot.objects[i].index, i);
    EXPECT_EQ(snapshot.objects[i].pe, i == 2 ? 1 : 0);
    EXPECT_EQ(snapshot.objects[i].can_move, i != 1);
  }
  EXPECT_EQ(snapshot.objects[1].load_s, 2);
}

TEST(SyncStep, RefusesReportsThatCannotBe) {
  SyncStep step(kCollection, 2, 2);
  using Loads = std::vector<ReportedLoad>;
  EXPECT_EQ(error_of(step.add(0, Loads{{2, 1, 1}})), "it reports element 2 of 2");
  EXPECT_NE(error_of(step.add(0, Loads{{0, 1, 2}})).find("a flag of 2"), std::string::npos);
  EXPECT_NE(error_of(step.add(0, Loads{{0, -1, 1}})).find("expected 0 to"), std::string::npos);
  EXPECT_NE(error_of(step.add(0, Loads{{0, std::numeric_limits<double>::quiet_NaN(), 1}})).find("expected"),
            std::string::npos);
  EXPECT_NE(error_of(step.add(2, Loads{{0, 1, 1}})).find("is on PE 2"), std::string::npos);
  EXPECT_FALSE(step.is_complete());
  ASSERT_TRUE(step.add(0, Loads{{0, 1, 1}}).ok());
  EXPECT_NE(error_of(step.add(1, Loads{{0, 1, 1}})).find("has been reported before"), std::string::npos);
}

TEST(SyncStep, PlansMovesAndCountsThePesThatHaveCarriedThemOut) {
  SyncStep step(kCollection, 4, 3);
  const std::vector<ReportedLoad> loads{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 0}};
  ASSERT_TRUE(step.add(0, loads).ok());
  const auto rotate = strategy("rotate");
  const auto plans = step.decide(*rotate);
  ASSERT_TRUE(plans.ok());
  ASSERT_EQ(plans.value().size(), 3U);
  ASSERT_EQ(plans.value()[0].moves.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plans.value()[0].moves[i].index, i);
    EXPECT_EQ(plans.value()[0].moves[i].to_pe, 1U);
  }
  EXPECT_EQ(plans.value()[0].num_arrivals, 0U);
  EXPECT_EQ(plans.value()[1].num_arrivals, 3U);
  EXPECT_TRUE(plans.value()[2].is_empty());

  EXPECT_FALSE(step.is_done());
  EXPECT_EQ(error_of(step.done(2, 0, 0)), "it has no moves to carry out");
  EXPECT_NE(error_of(step.done(0, 4, 0)).find("was asked for 3"), std::string::npos);
  EXPECT_TRUE(step.done(1, 0, 0).ok());
  EXPECT_FALSE(step.is_done());
  EXPECT_TRUE(step.done(0, 2, 100).ok());  // one could not move any more
  EXPECT_TRUE(step.is_done());
  EXPECT_EQ(step.moves(), 2U);
  EXPECT_EQ(step.bytes_moved(), 100U);
  EXPECT_EQ(error_of(step.done(0, 0, 0)), "it has no moves to carry out");
}

}  // namespace
}  // namespace weft::chare
