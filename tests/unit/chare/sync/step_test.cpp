#include "models/chare/sync/step.h"

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

std::string refusal_of(const base::Status& status) {
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
  EXPECT_EQ(refusal_of(step.add(0, Loads{{2, 1, 1}})), "it reports element 2 of 2");
  EXPECT_NE(refusal_of(step.add(0, Loads{{0, 1, 2}})).find("a flag of 2"), std::string::npos);
  EXPECT_NE(refusal_of(step.add(0, Loads{{0, -1, 1}})).find("expected 0 to"), std::string::npos);
  EXPECT_NE(refusal_of(step.add(0, Loads{{0, std::numeric_limits<double>::quiet_NaN(), 1}})).find("expected"),
            std::string::npos);
  for (const double device_s : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(refusal_of(step.add(0, Loads{{0, 1, 1, device_s}})).find("with a device load of"),
              std::string::npos);
  }
  EXPECT_NE(refusal_of(step.add(2, Loads{{0, 1, 1}})).find("is on PE 2"), std::string::npos);
  EXPECT_FALSE(step.is_complete());
  ASSERT_TRUE(step.add(0, Loads{{0, 1, 1}}).ok());
  EXPECT_NE(refusal_of(step.add(1, Loads{{0, 1, 1}})).find("has been reported before"), std::string::npos);
}

TEST(SyncStep, LoadsAreThoseOfTheBusierResource) {
  using Loads = std::vector<double>;
  // The sums: 5 s of the host; of devices 4.5 s, as much as the host's, and more.
  for (const double device_s : {4.0, 4.5, 5.0}) {
    const bool is_by_device_time = device_s == 5.0;
    SyncStep step(kCollection, 3, 2);
    ASSERT_TRUE(step.add(0, std::vector<ReportedLoad>{{2, 2, 1, 0.5}, {0, 1, 1, 0}}).ok());
    ASSERT_TRUE(step.add(1, std::vector<ReportedLoad>{{1, 2, 1, device_s}}).ok());
    step.set_background(Loads{3, 4});
    const auto none = strategy("none");
    ASSERT_TRUE(step.decide(*none).ok());
    Loads loads_s;
    for (const balance::ObjectLoad& object : step.snapshot().objects) loads_s.push_back(object.load_s);
    EXPECT_EQ(loads_s, is_by_device_time ? (Loads{0, device_s, 0.5}) : (Loads{1, 2, 2}));
    EXPECT_EQ(step.snapshot().background_load_s, is_by_device_time ? (Loads{0, 0}) : (Loads{3, 4}));
    EXPECT_EQ(step.report("Block", 1, "none").is_by_device_time, is_by_device_time);
  }
}

using Messages = std::vector<ReportedMessages>;

// The edges do not depend on the order of the reports.
TEST(SyncStep, CollectsWhatElementsHaveSent) {
  const std::vector<ReportedLoad> on_pe_0{{1, 1, 1}, {0, 1, 1}};
  const std::vector<ReportedLoad> on_pe_1{{2, 1, 1}};
  for (const bool is_pe_0_first : {true, false}) {
    SyncStep step(kCollection, 3, 2);
    for (const bool is_pe_0 : {is_pe_0_first, !is_pe_0_first}) {
      const std::vector<ReportedLoad>& loads = is_pe_0 ? on_pe_0 : on_pe_1;
      ASSERT_TRUE(step.add(is_pe_0 ? 0 : 1, loads).ok());
      const Messages messages =
          is_pe_0 ? Messages{{0, {0, 3, 30}}, {0, {2, 1, 10}}, {1, {1, 2, 20}}} : Messages{{0, {0, 5, 50}}};
      ASSERT_TRUE(step.add_messages(loads, messages).ok());
    }
    const auto none = strategy("none");
    ASSERT_TRUE(step.decide(*none).ok());
    const auto& edges = step.snapshot().edges;
    const std::vector<std::vector<std::uint64_t>> expected{
        {0, 1, 2, 20}, {1, 0, 3, 30}, {1, 2, 1, 10}, {2, 0, 5, 50}};
    ASSERT_EQ(edges.size(), expected.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      EXPECT_EQ((std::vector<std::uint64_t>{edges[i].from, edges[i].to, edges[i].messages, edges[i].bytes}),
                expected[i]);
    }
  }
}

TEST(SyncStep, RefusesMessagesThatCannotBe) {
  constexpr std::uint64_t kSize = 20'000;
  SyncStep step(kCollection, kSize, 2);
  std::vector<ReportedLoad> loads;
  for (std::uint64_t i = 0; i < kSize; ++i) loads.push_back({i, 1, 1});
  ASSERT_TRUE(step.add(0, loads).ok());
  const auto refused = [&](const Messages& messages) {
    return refusal_of(step.add_messages(loads, messages));
  };
  EXPECT_EQ(refused({{kSize, {1, 1, 1}}}),
            "it reports messages of element number 20000 of 20000 of its report");
  EXPECT_NE(refused({{1, {0, 1, 1}}, {0, {1, 1, 1}}}).find("element number 0"), std::string::npos);
  EXPECT_NE(refused({{1, {kSize, 1, 1}}}).find("1 receivers of messages of element 1,"), std::string::npos);
  EXPECT_NE(refused({{1, {1, 1, 1}}}).find("that cannot be"), std::string::npos);
  EXPECT_NE(refused({{1, {2, 1, 1}}, {1, {2, 1, 1}}}).find("that cannot be"), std::string::npos);
  Messages many;
  for (std::uint64_t i = 0; i < kSize; ++i)
    many.push_back({i, {(i + 1) % kSize, 1, SentMessages::kMostBytes}});
  EXPECT_NE(refused(many).find("that make the sum of bytes"), std::string::npos);
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
  EXPECT_EQ(refusal_of(step.done(2, 0, 0)), "it has no moves to carry out");
  EXPECT_NE(refusal_of(step.done(0, 4, 0)).find("was asked for 3"), std::string::npos);
  EXPECT_TRUE(step.done(1, 0, 0).ok());
  EXPECT_FALSE(step.is_done());
  EXPECT_TRUE(step.done(0, 2, 100).ok());  // one could not move any more
  EXPECT_TRUE(step.is_done());
  EXPECT_EQ(step.moves(), 2U);
  EXPECT_EQ(step.bytes_moved(), 100U);
  EXPECT_EQ(refusal_of(step.done(0, 0, 0)), "it has no moves to carry out");
}

TEST(SyncStep, HasBackgroundLoadUnlessLoadsAreSet) {
  for (const bool are_set : {false, true}) {
    SyncStep step(kCollection, 1, 2);
    ASSERT_TRUE(step.add(1, std::vector<ReportedLoad>{{0, 1, 1}}).ok());
    if (are_set) step.ignore_background();
    step.set_background(std::vector<double>{0.25, 4});
    const auto greedy_refine = strategy("greedy_refine");
    const auto plans = step.decide(*greedy_refine);
    ASSERT_TRUE(plans.ok());
    EXPECT_EQ(step.snapshot().background_load_s,
              are_set ? (std::vector<double>{0, 0}) : (std::vector<double>{0.25, 4}));
    EXPECT_EQ(plans.value()[0].num_arrivals, are_set ? 0U : 1U);
  }
}

}  // namespace
}  // namespace weft::chare
