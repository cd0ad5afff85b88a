#include "models/chare/balancing/pace.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "weft/balance/snapshot.h"

#include "balance/strategy_table.h"
#include "models/chare/sync/step.h"

namespace weft::chare {
namespace {

Pace pace_of(const std::vector<double>& loads, const std::vector<double>& times_s) {
  Pace pace;
  for (std::size_t i = 0; i < loads.size(); ++i) pace.add(loads[i], times_s[i]);
  return pace;
}

TEST(Pace, SpeedsAreThoseBesideAllPesTogether) {
  // 30 in 1 s and 10 in 1 s: 40 in 2 s together.
  const std::vector<Pace> paces{pace_of({10, 20}, {1. / 3, 2. / 3}), pace_of({10}, {1})};
  const std::vector<double> speeds = speeds_of(paces);
  ASSERT_EQ(speeds.size(), 2U);
  EXPECT_DOUBLE_EQ(speeds[0], 1.5);
  EXPECT_DOUBLE_EQ(speeds[1], 0.5);
}

TEST(Pace, APeOfWhichNothingIsKnownHasSpeed1) {
  const Pace known = pace_of({10}, {1});
  EXPECT_TRUE(speeds_of(std::vector<Pace>(2)).empty());
  EXPECT_EQ(speeds_of(std::vector<Pace>{known, {}}), (std::vector<double>{1, 1}));
  Pace nothing;
  nothing.add(0, 1);  // no load was set
  nothing.add(1e-300, 1);
  EXPECT_FALSE(nothing.tells());
  EXPECT_TRUE(nothing.is_valid());
  Pace mixed = pace_of({10}, {1});
  mixed.add_measured();
  EXPECT_FALSE(mixed.tells());
  EXPECT_TRUE(mixed.is_valid());
  EXPECT_FALSE(pace_of({10}, {1e-4}).tells()) << "too short to be compared";
}

TEST(Pace, LoadsThatStandForSomethingElseTellNothing) {
  EXPECT_TRUE(pace_of({1, 1, 1, 1}, {0.9, 1.1, 1.2, 0.8}).tells());
  EXPECT_FALSE(pace_of({1, 1, 1, 1}, {0.2, 1.8, 1, 1}).tells());
  EXPECT_TRUE(pace_of({1000, 1}, {1000, 3}).tells()) << "a small element may take what it likes";
}

TEST(Pace, SpeedsHaveLimits) {
  const std::vector<double> speeds =
      speeds_of(std::vector<Pace>{pace_of({1000}, {1}), pace_of({1}, {1}), pace_of({1}, {1}),
                                  pace_of({1}, {1}), pace_of({1}, {1}), pace_of({1}, {1})});
  EXPECT_EQ(speeds[0], 2);
  EXPECT_EQ(speeds[1], 0.5);
}

TEST(Pace, ADecisionUsesItAndRefusesWhatIsNone) {
  SyncStep step(7, 2, 2);
  EXPECT_TRUE(step.add(0, std::vector<ReportedLoad>{{0, 1, 1}}).ok());
  EXPECT_TRUE(step.add(1, std::vector<ReportedLoad>{{1, 1, 1}}).ok());
  for (const double wrong : {-1.0, 1e61, std::numeric_limits<double>::quiet_NaN()}) {
    for (const Pace& pace : {Pace{wrong, 1, 1}, Pace{1, wrong, 1}, Pace{1, 1, wrong}}) {
      EXPECT_EQ(step.add_pace(0, pace).code(), base::StatusCode::kInvalidArgument);
    }
  }
  EXPECT_TRUE(step.add_pace(0, Pace{5e-324, 1e60, 0}).failed()) << "its speed would be no number";
  EXPECT_TRUE(step.add_pace(0, pace_of({3}, {1})).ok());
  EXPECT_TRUE(step.add_pace(1, pace_of({1}, {1})).ok());
  auto none = balance::make_strategy("none");
  ASSERT_TRUE(none.ok());
  ASSERT_TRUE(step.decide(*none.value()).ok());
  EXPECT_EQ(step.snapshot().pe_speed, (std::vector<double>{1.5, 0.5}));
}

}  // namespace
}  // namespace weft::chare
