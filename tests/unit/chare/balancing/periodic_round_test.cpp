#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "models/chare/periodic/round.h"
#include "tests/support/errors.h"

namespace weft::chare {
namespace {

using test_support::says;

// Gives each object to the PE after its own one, if it can move.
struct Rotate : balance::Strategy {
  std::string_view name() const override { return "rotate"; }
  balance::Placement place(const balance::Snapshot& snapshot) override {
    balance::Placement placement;
    for (const balance::ObjectLoad& object : snapshot.objects) {
      placement.push_back(object.can_move ? (object.pe + 1) % snapshot.num_pes : object.pe);
    }
    return placement;
  }
};

std::string why_refused(double background_s, std::uint64_t has_set_loads, std::vector<PeriodicLoad> loads) {
  Round round(7, 4, 2);
  return std::string(round.add(0, background_s, has_set_loads, loads, {}).message());
}

TEST(PeriodicRound, IsCompleteWhenEachPeHasReported) {
  Round round(7, 4, 2);
  EXPECT_FALSE(round.is_complete());
  EXPECT_TRUE(round.add(1, 0.5, 0, std::vector<PeriodicLoad>{{3, 2.0, 1, 0}, {1, 1.0, 0, 0}}, {}).ok());
  EXPECT_FALSE(round.is_complete());
  EXPECT_TRUE(round.add(0, 0.25, 0, {}, {}).ok());
  EXPECT_TRUE(round.is_complete());
  Rotate strategy;
  const auto plans = round.decide(strategy);
  ASSERT_TRUE(plans.ok());
  ASSERT_EQ(plans.value()[1].moves.size(), 1U);  // the other one cannot move
  EXPECT_EQ(plans.value()[1].moves[0].index, 3U);
  EXPECT_EQ(plans.value()[1].moves[0].to_pe, 0U);
  EXPECT_EQ(round.snapshot().background_load_s, (std::vector<double>{0.25, 0.5}));
  EXPECT_FALSE(round.is_done());
  EXPECT_TRUE(round.done(1, 1, 100).ok());
  EXPECT_TRUE(round.done(0, 0, 0).ok());
  EXPECT_TRUE(round.is_done());
}

TEST(PeriodicRound, WithoutElementsTakesNoTimeFromBefore) {
  const auto before = Round::Clock::now();
  Round round(7, 4, 1);
  EXPECT_TRUE(round.add(0, 0, 0, {}, {}).ok());
  Rotate strategy;
  EXPECT_TRUE(round.decide(strategy).ok());
  EXPECT_TRUE(round.is_done());
  const auto elapsed = round.elapsed();
  EXPECT_LE(elapsed, Round::Clock::now() - before);
}

TEST(PeriodicRound, AnElementThatMovedBetweenTwoReportsIsWhereItCameLast) {
  for (const bool swapped : {false, true}) {
    Round round(7, 4, 3);
    const std::vector<PeriodicLoad> before{{2, 1.5, 1, 4}};
    const std::vector<PeriodicLoad> after{{2, 0.5, 1, 5}};
    EXPECT_TRUE(round.add(0, 0, 0, swapped ? after : before, {}).ok());
    EXPECT_TRUE(round.add(1, 0, 0, {}, {}).ok());
    EXPECT_TRUE(round.add(2, 0, 0, swapped ? before : after, {}).ok());
    Rotate strategy;
    ASSERT_TRUE(round.decide(strategy).ok());
    ASSERT_EQ(round.snapshot().objects.size(), 1U);
    EXPECT_EQ(round.snapshot().objects[0].load_s, 2.0);
    EXPECT_EQ(round.snapshot().objects[0].pe, swapped ? 0 : 2);
  }
}

TEST(PeriodicRound, LoadsAreThoseOfTheBusierResource) {
  for (const double device_s : {1.0, 3.0}) {
    const bool is_by_device_time = device_s == 3.0;
    Round round(7, 4, 2);
    EXPECT_TRUE(round.add(0, 1, 0, std::vector<PeriodicLoad>{{2, 1.5, 1, 4, 0.5}}, {}).ok());
    EXPECT_TRUE(
        round.add(1, 1, 0, std::vector<PeriodicLoad>{{2, 0.5, 1, 5, device_s}, {0, 1, 1, 0, 0}}, {}).ok());
    Rotate strategy;
    ASSERT_TRUE(round.decide(strategy).ok());
    const auto& objects = round.snapshot().objects;
    ASSERT_EQ(objects.size(), 2U);
    EXPECT_EQ(objects[0].load_s, is_by_device_time ? 0.0 : 1.0);
    EXPECT_EQ(objects[1].load_s, is_by_device_time ? 3.5 : 2.0) << "the sum of its two reports";
    EXPECT_EQ(round.snapshot().background_load_s[0], is_by_device_time ? 0.0 : 1.0);
    EXPECT_EQ(round.report("Block", 1, "rotate").is_by_device_time, is_by_device_time);
  }
}

TEST(PeriodicRound, BackgroundIsNoPartOfSetLoads) {
  Round round(7, 4, 2);
  EXPECT_TRUE(round.add(0, 3, 1, {}, {}).ok());
  EXPECT_TRUE(round.add(1, 2, 0, {}, {}).ok());
  Rotate strategy;
  EXPECT_TRUE(round.decide(strategy).ok());
  EXPECT_EQ(round.snapshot().background_load_s, (std::vector<double>{0, 0}));
}

TEST(PeriodicRound, EdgesJoinElementsThatWereReported) {
  Round round(7, 9, 2);
  const std::vector<PeriodicLoad> first{{2, 1, 1, 0}, {4, 1, 1, 0}};
  const std::vector<PeriodicLoad> second{{2, 1, 1, 1}, {8, 1, 1, 0}};
  // Element 2 has moved between the reports, element 5 is under way.
  const std::vector<ReportedMessages> of_first{{0, {4, 3, 300}}, {0, {5, 1, 50}}, {1, {8, 2, 20}}};
  const std::vector<ReportedMessages> of_second{{0, {4, 1, 7}}};
  EXPECT_TRUE(round.add(0, 0, 0, first, of_first).ok());
  EXPECT_TRUE(round.add(1, 0, 0, second, of_second).ok());
  Rotate strategy;
  ASSERT_TRUE(round.decide(strategy).ok());
  const auto& edges = round.snapshot().edges;
  ASSERT_EQ(edges.size(), 2U);
  EXPECT_EQ(std::tuple(edges[0].from, edges[0].to, edges[0].messages, edges[0].bytes),
            std::tuple(0U, 1U, 4U, 307U));
  EXPECT_EQ(std::tuple(edges[1].from, edges[1].to, edges[1].messages, edges[1].bytes),
            std::tuple(1U, 2U, 2U, 20U));
}

TEST(PeriodicRound, ChecksTheMessagesThatPesReport) {
  const std::vector<PeriodicLoad> loads{{2, 1, 1, 0}};
  for (const ReportedMessages& wrong : {ReportedMessages{1, {3, 1, 1}}, ReportedMessages{0, {2, 1, 1}},
                                        ReportedMessages{0, {9, 1, 1}}, ReportedMessages{0, {3, 0, 1}}}) {
    Round round(7, 9, 2);
    EXPECT_NE(round.add(0, 0, 0, loads, std::vector{wrong}).message(), "");
  }
}

TEST(PeriodicRound, ChecksWhatPesSend) {
  EXPECT_EQ(why_refused(0, 0, {{3, 1, 1, 0}}), "");
  EXPECT_TRUE(says(why_refused(0, 0, {{4, 1, 1, 0}}), "element 4 of 4"));
  EXPECT_TRUE(says(why_refused(0, 0, {{3, 1, 2, 0}}), "a flag of 2"));
  EXPECT_TRUE(says(why_refused(0, 0, {{3, -1, 1, 0}}), "expected 0 to"));
  EXPECT_TRUE(says(why_refused(0, 0, {{3, 1, 1, 0, -1}}), "with a device load of"));
  EXPECT_TRUE(says(why_refused(0, 2, {}), "loads with a flag of 2"));
  for (const double wrong : {-1.0, 2e12, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(says(why_refused(wrong, 0, {}), "a background load of"));
  }
  Round round(7, 4, 2);
  EXPECT_TRUE(round.add(0, 0, 0, {}, {}).ok());
  EXPECT_TRUE(says(std::string(round.add(0, 0, 0, {}, {}).message()), "has reported before"));
}

}  // namespace
}  // namespace weft::chare
