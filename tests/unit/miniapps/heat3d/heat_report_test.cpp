#include "heat_report.h"

#include <vector>

#include "gtest/gtest.h"

namespace heat3d {
namespace {

TEST(HeatReportTest, WindowsOfTwoStepsSlideByOne) {
  const std::vector<double> ends{1.0, 2.0, 4.0, 8.0};
  EXPECT_EQ(two_step_times(ends), (std::vector<double>{3.0, 6.0}));
  EXPECT_TRUE(two_step_times(std::vector<double>{1.0, 2.0}).empty());
}

TEST(HeatReportTest, AStepEndsWithItsLastBlock) {
  const std::vector<std::vector<double>> blocks{{1.0, 5.0}, {2.0, 4.0}};
  EXPECT_EQ(last_ends(blocks), (std::vector<double>{2.0, 5.0}));
}

TEST(HeatReportTest, QuantilesLieBetweenTimes) {
  EXPECT_EQ(quantile({3.0, 1.0, 2.0}, 0.5), 2.0);
  EXPECT_EQ(quantile({1.0, 2.0}, 0.5), 1.5);
  EXPECT_EQ(quantile({4.0, 2.0}, 1.0), 4.0);
  EXPECT_EQ(quantile({7.0}, 0.95), 7.0);
}

}  // namespace
}  // namespace heat3d
