#include "weft/runtime/metering/turn_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Times = TurnMeter::Times;

struct Log final : TurnMeter::Listener {
  void times_changed(const Times& times) override { changes.push_back(times); }
  void publish(const Times& times) override { published.push_back(times); }
  std::vector<Times> changes;
  std::vector<Times> published;
};

class TurnMeterTest : public ::testing::Test {
 protected:
  TurnMeterTest() { meter.set_listener(&log); }
  // How many turns pass until one is measured, that one included.
  std::int64_t turns_to_measured() {
    for (std::int64_t turns = 1; turns < 1000; ++turns) {
      if (meter.is_turn_measured()) return turns;
    }
    return 0;
  }
  // Until as few turns as possible are measured.
  void make_short_turns() {
    while (turns_to_measured() < TurnMeter::kMeasuredTurns) meter.turn_measured(now, now, false);
    meter.turn_measured(now, now, false);
  }
  TurnMeter meter;
  Log log;
  const TurnMeter::Clock::time_point start = TurnMeter::Clock::now();
  TurnMeter::Clock::time_point now = start;
};

TEST_F(TurnMeterTest, AMeasuredTurnCountsForAll) {
  make_short_turns();
  EXPECT_EQ(turns_to_measured(), TurnMeter::kMeasuredTurns);
  meter.turn_measured(now, now + microseconds(2), true);
  EXPECT_EQ(turns_to_measured(), TurnMeter::kMeasuredTurns);
  meter.turn_measured(now + microseconds(10), now + microseconds(15), false);  // an idle one
  meter.before_sleep(now + microseconds(20));
  ASSERT_EQ(log.published.size(), 2U) << "the first by set_listener()";
  EXPECT_EQ(log.published.back().communication, microseconds(2) * TurnMeter::kMeasuredTurns);
}

TEST_F(TurnMeterTest, LongTurnsAreMeasuredMoreOften) {
  make_short_turns();
  ASSERT_NE(turns_to_measured(), 0);
  now += 127 * milliseconds(200);
  meter.turn_measured(now, now, true);
  EXPECT_EQ(turns_to_measured(), 1);
  EXPECT_EQ(log.published.size(), 2U);
  now += milliseconds(10);
  meter.turn_measured(now, now, true);
  EXPECT_EQ(turns_to_measured(), 2) << "they take 20 ms";
  EXPECT_EQ(log.published.size(), 2U) << "it publishes every 20 ms";
  now += milliseconds(20);
  meter.turn_measured(now, now, true);
  EXPECT_EQ(turns_to_measured(), 2);
  EXPECT_EQ(log.published.size(), 3U);
}

TEST_F(TurnMeterTest, AShortIdleTimeCountsForOthers) {
  for (int i = 1; i < TurnMeter::kMeasuredIdles; ++i) EXPECT_FALSE(meter.is_idle_measured());
  EXPECT_TRUE(meter.is_idle_measured());
  meter.begin_idle(start);
  EXPECT_TRUE(meter.is_idle());
  meter.end_idle(start + microseconds(3));
  EXPECT_TRUE(log.changes.empty());
  meter.before_sleep(start + milliseconds(1));
  EXPECT_EQ(log.published.back().idle, microseconds(3) * TurnMeter::kMeasuredIdles);
}

TEST_F(TurnMeterTest, ALongIdleTimeCountsAsItIs) {
  meter.begin_idle(start);
  EXPECT_TRUE(meter.begin_long_idle(start + microseconds(10)));
  EXPECT_TRUE(meter.begin_long_idle(start + microseconds(90))) << "it is idle still";
  const auto polled = microseconds(10) * TurnMeter::kMeasuredIdles;
  ASSERT_EQ(log.changes.size(), 1U);
  EXPECT_EQ(log.changes.back().idle, polled);
  EXPECT_EQ(log.changes.back().idle_since, start + microseconds(10));
  meter.end_idle(start + microseconds(500));
  ASSERT_EQ(log.changes.size(), 2U);
  EXPECT_EQ(log.changes.back().idle, polled + microseconds(490));
  EXPECT_EQ(log.changes.back().idle_since, TurnMeter::Clock::time_point{});
}

// The system had given the processor to another thread.
TEST_F(TurnMeterTest, SamplesAreBounded) {
  meter.begin_idle(start);
  meter.end_idle(start + milliseconds(50));
  ASSERT_EQ(turns_to_measured(), 1);
  meter.turn_measured(start, start + milliseconds(50), true);
  EXPECT_EQ(log.published.back().idle, TurnMeter::kLongestSample * TurnMeter::kMeasuredIdles);
  EXPECT_EQ(log.published.back().communication, TurnMeter::kLongestSample);
}

TEST_F(TurnMeterTest, NothingIsMeasuredWithoutAListener) {
  meter.set_listener(nullptr);
  EXPECT_EQ(turns_to_measured(), 0);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(meter.is_idle_measured());
  EXPECT_FALSE(meter.begin_long_idle(start));
  EXPECT_FALSE(meter.is_idle());
}

}  // namespace
}  // namespace weft::runtime
