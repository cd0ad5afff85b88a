#include "balance/strategy_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace weft::balance {
namespace {

TEST(StrategyTable, NamesAreDistinctAndTheDefaultIsThere) {
  std::set<std::string_view> names;
  for (const StrategyEntry& entry : strategy_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.summary.empty());
  }
  EXPECT_TRUE(names.contains(kDefaultStrategy));
  EXPECT_EQ(strategy_names(), "none, greedy, refine, greedy_refine, diffusion, rotate, random");
}

TEST(StrategyTable, SaysWhichStrategiesReadCommunication) {
  for (const StrategyEntry& entry : strategy_table()) {
    EXPECT_EQ(reads_communication(entry.name), entry.name == "diffusion") << entry.name;
  }
  EXPECT_FALSE(reads_communication("fastest"));
}

TEST(StrategyTable, SaysWhichStrategiesTheJobsPesDecideTogether) {
  for (const StrategyEntry& entry : strategy_table()) {
    EXPECT_EQ(is_distributed(entry.name), entry.name == "diffusion") << entry.name;
    EXPECT_EQ(entry.make({})->distributed() != nullptr, entry.is_distributed) << entry.name;
  }
  EXPECT_FALSE(is_distributed("fastest"));
}

TEST(StrategyTable, AnUnknownNameIsRefusedWithTheKnownOnes) {
  for (const std::string name : {"", "Greedy", "greedy ", "fastest"}) {
    auto strategy = make_strategy(name);
    ASSERT_FALSE(strategy.ok()) << name;
    EXPECT_EQ(strategy.status().code(), base::StatusCode::kInvalidArgument);
    EXPECT_EQ(strategy.status().message(),
              "there is no load-balancing strategy '" + name + "'; the known ones are " + strategy_names());
  }
}

TEST(StrategyTable, AToleranceOutOfRangeIsRefused) {
  for (const double tolerance : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(make_strategy("greedy", {.tolerance = tolerance}).ok()) << tolerance;
  }
}

}  // namespace
}  // namespace weft::balance
