#include "models/chare/sync/distributed_step.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/errors.h"

namespace weft::chare {
namespace {

using test_support::says;

std::string refused_with(const base::Status& status) {
  EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

// Two elements on each of two PEs.
DistributedStep complete_step() {
  DistributedStep step(4, 2);
  EXPECT_TRUE(step.add(0, {2, 0, 1, 0}).ok());
  EXPECT_FALSE(step.is_complete());
  EXPECT_TRUE(step.add(1, {2, 0, 2, 0}).ok());
  EXPECT_TRUE(step.is_complete());
  return step;
}

TEST(DistributedStep, CountsElementsAndPes) {
  DistributedStep step = complete_step();
  EXPECT_FALSE(step.is_by_device_time());
  EXPECT_FALSE(step.ignores_background());
  EXPECT_TRUE(step.ready(1).ok());
  EXPECT_FALSE(step.are_all_ready());
  EXPECT_TRUE(step.ready(0).ok());
  EXPECT_TRUE(step.are_all_ready());
  EXPECT_TRUE(step.over(0, {0, 0, 1, 1.5, 0.25}).ok());
  EXPECT_FALSE(step.is_over());
  EXPECT_TRUE(step.over(1, {1, 800, 3, 2.5, 0.125}).ok());
  EXPECT_TRUE(step.is_over());
  const StepReport report = step.report("Block", 3, "diffusion");
  EXPECT_EQ(report.collection, "Block");
  EXPECT_EQ(report.step, 3U);
  EXPECT_EQ(report.strategy, "diffusion");
  EXPECT_DOUBLE_EQ(report.planned.imbalance_before, 0.5);
  EXPECT_DOUBLE_EQ(report.planned.imbalance_after, 0.25);
  EXPECT_EQ(report.moves, 1U);
  EXPECT_EQ(report.bytes_moved, 800U);
  EXPECT_EQ(report.decision_s, 0.25);
  EXPECT_GE(report.whole_s, 0);
}

TEST(DistributedStep, DecidesWhatHoldsForAllPes) {
  DistributedStep devices(2, 2);
  EXPECT_TRUE(devices.add(0, {1, 0, 3, 1}).ok());
  EXPECT_TRUE(devices.add(0, {1, 0, 1, 4}).ok());
  EXPECT_TRUE(devices.is_by_device_time());
  EXPECT_TRUE(devices.ignores_background());
  DistributedStep set(2, 2);
  EXPECT_TRUE(set.add(0, {1, 1, 3, 3}).ok());
  EXPECT_TRUE(set.add(0, {1, 0, 0, 0}).ok());
  EXPECT_FALSE(set.is_by_device_time());
  EXPECT_TRUE(set.ignores_background());
}

TEST(DistributedStep, AStepWithoutLoadHasNoImbalance) {
  DistributedStep step = complete_step();
  for (const int pe : {0, 1}) EXPECT_TRUE(step.ready(pe).ok());
  for (const int pe : {0, 1}) EXPECT_TRUE(step.over(pe, {}).ok());
  EXPECT_EQ(step.report("Block", 1, "diffusion").planned.imbalance_before, 0);
  EXPECT_EQ(step.report("Block", 1, "diffusion").planned.imbalance_after, 0);
}

TEST(DistributedStep, RefusesCountsThatCannotBe) {
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  DistributedStep step(4, 2);
  EXPECT_TRUE(says(refused_with(step.ready(0)), "0 of 4 elements wait"));
  EXPECT_TRUE(says(refused_with(step.over(0, {})), "0 of 2 PEs were ready"));
  EXPECT_TRUE(says(refused_with(step.add(0, {0, 0, 1, 0})), "0 elements more wait"));
  EXPECT_TRUE(says(refused_with(step.add(0, {5, 0, 1, 0})), "5 elements more wait, and 0 of 4"));
  EXPECT_TRUE(says(refused_with(step.add(0, {1, 2, 1, 0})), "a flag of 2"));
  for (const double wrong : {-1.0, 1e31, kNoNumber}) {
    EXPECT_TRUE(says(refused_with(step.add(0, {1, 0, wrong, 0})), "wait with loads of"));
    EXPECT_TRUE(says(refused_with(step.add(0, {1, 0, 1, wrong})), "and device loads of"));
  }
  step = complete_step();
  EXPECT_TRUE(says(refused_with(step.add(0, {1, 0, 1, 0})), "and 4 of 4 waited before"));
  EXPECT_TRUE(step.ready(0).ok());
  EXPECT_TRUE(says(refused_with(step.ready(0)), "it is ready"));
  EXPECT_TRUE(says(refused_with(step.over(0, {})), "1 of 2 PEs were ready"));
  EXPECT_TRUE(step.ready(1).ok());
  EXPECT_TRUE(says(refused_with(step.over(0, {5, 0, 1, 1, 0})), "it has moved 5 elements of 4"));
  for (const double wrong : {1e31, kNoNumber}) {
    for (const PeOutcome& outcome :
         {PeOutcome{0, 0, wrong, 1, 0}, PeOutcome{0, 0, 1, wrong, 0}, PeOutcome{0, 0, 1, 1, wrong}}) {
      EXPECT_FALSE(step.over(0, outcome).ok());
    }
  }
  EXPECT_TRUE(step.over(0, {4, 0, 1, 1, 0}).ok());
  EXPECT_FALSE(step.over(0, {}).ok());
  EXPECT_FALSE(step.over(1, {1, 0, 1, 1, 0}).ok());
}

// A PE that reports in parts: each of them is too short to tell anything.
TEST(DistributedStep, AddsUpThePaceOfAPe) {
  DistributedStep step(2, 1);
  Pace half;
  half.add(4, 0.75e-3);
  ASSERT_FALSE(half.tells());
  EXPECT_TRUE(step.add(0, {1, 1, 4, 4, half}).ok());
  EXPECT_TRUE(step.add(0, {1, 1, 4, 4, half}).ok());
  EXPECT_EQ(step.pace().load, 8);
  EXPECT_DOUBLE_EQ(step.pace().time_s, 1.5e-3);
}

}  // namespace
}  // namespace weft::chare
