#include "weft/runtime/metering/yield_times.h"

#include <gtest/gtest.h>

namespace weft::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(YieldTimes, AShortYieldSaysNothing) {
  YieldTimes times;
  const YieldTimes::Clock::time_point begin{milliseconds(1000)};
  EXPECT_FALSE(times.are_long(begin));
  times.note(begin, begin + microseconds(100));
  EXPECT_FALSE(times.are_long(begin + microseconds(100)));
}

TEST(YieldTimes, AreLongForAWhileAfterALongOne) {
  YieldTimes times;
  const YieldTimes::Clock::time_point begin{milliseconds(1000)};
  const YieldTimes::Clock::time_point end = begin + milliseconds(4);
  times.note(begin, end);
  EXPECT_TRUE(times.are_long(end));
  EXPECT_TRUE(times.are_long(end + milliseconds(30)));
  EXPECT_FALSE(times.are_long(end + milliseconds(100))) << "the next yield tells";
}

}  // namespace
}  // namespace weft::runtime
