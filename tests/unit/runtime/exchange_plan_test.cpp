#include "runtime/collective/exchange_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace weft::runtime {
namespace {

// Runs the steps of all PEs in turn and returns what each has at the end.
std::vector<std::set<int>> run(int num_pes) {
  std::vector<std::set<int>> has;
  for (int pe = 0; pe < num_pes; ++pe) has.push_back({pe});
  const int num_steps = ExchangePlan(0, num_pes).num_steps();
  for (int step = 0; step < num_steps; ++step) {
    const std::vector<std::set<int>> before = has;
    for (int pe = 0; pe < num_pes; ++pe) {
      const ExchangePlan plan(pe, num_pes);
      const int peer = plan.peer(step);
      if (peer == -1) continue;
      EXPECT_LT(peer, num_pes);
      const ExchangePlan theirs(peer, num_pes);
      EXPECT_EQ(theirs.peer(step), pe) << num_pes << " PEs, step " << step;
      EXPECT_EQ(plan.receives(step), theirs.sends(step)) << num_pes << " PEs, step " << step;
      if (!plan.receives(step)) continue;
      const auto& from = before[static_cast<std::size_t>(peer)];
      auto& mine = has[static_cast<std::size_t>(pe)];
      if (plan.is_last(step)) {
        mine = from;
      } else {
        for (int one : from) EXPECT_TRUE(mine.insert(one).second) << one << " comes twice";
      }
    }
  }
  return has;
}

TEST(ExchangePlan, EveryPeEndsWithThePartsOfAllOnce) {
  for (int num_pes = 1; num_pes <= 70; ++num_pes) {
    for (const std::set<int>& one : run(num_pes)) EXPECT_EQ(one.size(), static_cast<std::size_t>(num_pes));
  }
}

TEST(ExchangePlan, TheStepsOfManyPesFit) {
  EXPECT_LE(ExchangePlan(0, 2'147'483'647).num_steps(), ExchangePlan::kMaxSteps);
}

}  // namespace
}  // namespace weft::runtime
