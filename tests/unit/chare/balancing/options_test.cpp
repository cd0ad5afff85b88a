#include "models/chare/balancing/options.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weft/balance/register_strategy.h"

#include "balance/strategy_table.h"

namespace weft::chare {
namespace {

bool set(BalancingOptions& options, std::string_view variable, std::string_view value) {
  for (const runtime::ModelOption& one : options.variables()) {
    if (one.variable == variable) return one.set(value);
  }
  ADD_FAILURE() << "there is no variable " << variable;
  return false;
}

TEST(BalancingOptions, TakesTheNamesOfStrategiesAndNoOther) {
  BalancingOptions options;
  EXPECT_EQ(options.strategy, "greedy_refine");
  for (const balance::StrategyEntry& entry : balance::strategy_table()) {
    EXPECT_TRUE(set(options, "WEFT_LB", entry.name));
    EXPECT_EQ(options.strategy, entry.name);
  }
  EXPECT_FALSE(set(options, "WEFT_LB", "Greedy"));
  EXPECT_FALSE(set(options, "WEFT_LB", ""));
  EXPECT_TRUE(
      options.variables().front().values.starts_with(balance::strategy_names()));  // the error lists them
}

TEST(BalancingOptions, TakesStrategiesThatTheProgramHasRegistered) {
  BalancingOptions options;
  EXPECT_FALSE(set(options, "WEFT_LB", "of_the_program"));
  balance::register_strategy("of_the_program", &balance::present_placement);
  EXPECT_TRUE(set(options, "WEFT_LB", "of_the_program"));
  EXPECT_EQ(options.strategy, "of_the_program");
  EXPECT_NE(options.variables().front().values.find(", of_the_program"), std::string_view::npos);
  balance::unregister_strategy("of_the_program");
}

TEST(BalancingOptions, IsVerboseOnRequest) {
  BalancingOptions options;
  EXPECT_TRUE(set(options, "WEFT_LB_VERBOSE", "1"));
  EXPECT_TRUE(options.is_verbose);
  EXPECT_TRUE(set(options, "WEFT_LB_VERBOSE", "0"));
  EXPECT_FALSE(options.is_verbose);
  EXPECT_FALSE(set(options, "WEFT_LB_VERBOSE", "yes"));
  EXPECT_TRUE(set(options, "WEFT_LB_RECORD", "loads"));
  EXPECT_EQ(options.record_path, "loads");
}

TEST(BalancingOptions, TakesAPeriodInSeconds) {
  BalancingOptions options;
  EXPECT_EQ(options.period_s, 0);
  EXPECT_TRUE(set(options, "WEFT_LB_PERIOD", ""));
  EXPECT_EQ(options.period_s, 0);
  EXPECT_TRUE(set(options, "WEFT_LB_PERIOD", "0.5"));
  EXPECT_EQ(options.period_s, 0.5);
  EXPECT_TRUE(set(options, "WEFT_LB_PERIOD", "10"));
  EXPECT_EQ(options.period_s, 10);
  for (const char* wrong : {"0", "-1", "0.0001", "1e7", "nan", "inf", "1s", "soon"}) {
    EXPECT_FALSE(set(options, "WEFT_LB_PERIOD", wrong)) << wrong;
  }
}

TEST(BalancingOptions, AskForCommunicationIfTheStrategyReadsItOrLoadsAreRecorded) {
  BalancingOptions options;
  EXPECT_FALSE(options.reads_communication());
  EXPECT_TRUE(set(options, "WEFT_LB", "diffusion"));
  EXPECT_TRUE(options.reads_communication());
  EXPECT_TRUE(set(options, "WEFT_LB", "greedy"));
  EXPECT_FALSE(options.reads_communication());
  EXPECT_TRUE(set(options, "WEFT_LB_RECORD", "loads"));
  EXPECT_TRUE(options.reads_communication());
}

TEST(BalancingOptions, LeaveOutWaitsForAProcessorUnlessTheClockIsThatOfTheWall) {
  BalancingOptions options;
  EXPECT_FALSE(options.counts_waits);
  EXPECT_TRUE(set(options, "WEFT_LB_CLOCK", "wall"));
  EXPECT_TRUE(options.counts_waits);
  EXPECT_TRUE(set(options, "WEFT_LB_CLOCK", "running"));
  EXPECT_FALSE(options.counts_waits);
  EXPECT_FALSE(set(options, "WEFT_LB_CLOCK", "cpu"));
}

TEST(BalancingOptions, NamesAFileForEachStepAndPe) {
  EXPECT_EQ(record_file_name("/tmp/loads", 0, 3), "/tmp/loads.3");
  EXPECT_EQ(record_file_name("loads", 2, 1), "loads.pe2.1");
}

TEST(BalancingOptions, ReportsAStepInALine) {
  StepReport report;
  report.collection = "Block";
  report.step = 2;
  report.strategy = "refine";
  report.planned.imbalance_before = 0.5;
  report.planned.imbalance_after = 0.0123;
  report.moves = 4;
  report.bytes_moved = 1000;
  report.decision_s = 0.00025;
  report.whole_s = 0.0015;
  EXPECT_EQ(report.text(),
            "weft: load balancing of Block, step 2: refine, imbalance 50.0% before, 1.2% after, 4 moves, "
            "1000 bytes, decision 0.250 ms, step 1.500 ms\n");
  report.is_by_device_time = true;
  EXPECT_NE(report.text().find("step 2: refine by device time, imbalance 50.0% before"), std::string::npos);
}

}  // namespace
}  // namespace weft::chare
