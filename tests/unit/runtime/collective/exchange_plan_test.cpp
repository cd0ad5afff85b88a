#include "runtime/collective/exchange_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "runtime/tree/host_groups.h"

namespace weft::runtime {
namespace {

// Runs the steps of all PEs in turn and returns what each has at the end.
std::vector<std::set<int>> run_plan(int num_pes, const HostGroups* hosts = nullptr) {
  std::vector<std::set<int>> has;
  for (int pe = 0; pe < num_pes; ++pe) has.push_back({pe});
  const int num_steps = ExchangePlan(0, num_pes, hosts).num_steps();
  for (int step = 0; step < num_steps; ++step) {
    const std::vector<std::set<int>> before = has;
    for (int pe = 0; pe < num_pes; ++pe) {
      const ExchangePlan plan(pe, num_pes, hosts);
      EXPECT_EQ(plan.num_steps(), num_steps);
      const int peer = plan.peer(step);
      if (peer == -1) continue;
      EXPECT_LT(peer, num_pes);
      const ExchangePlan theirs(peer, num_pes, hosts);
      EXPECT_EQ(theirs.peer(step), pe) << num_pes << " PEs, step " << step;
      EXPECT_EQ(plan.receives(step), theirs.sends(step)) << num_pes << " PEs, step " << step;
      if (!plan.receives(step)) continue;
      const auto& from = before[static_cast<std::size_t>(peer)];
      auto& mine = has[static_cast<std::size_t>(pe)];
      if (plan.replaces(step)) {
        for (int one : mine) EXPECT_TRUE(from.contains(one)) << one << " is lost";
        mine = from;
      } else {
        for (int one : from) EXPECT_TRUE(mine.insert(one).second) << one << " comes twice";
      }
    }
  }
  return has;
}

std::shared_ptr<const HostGroups> hosts_by(int num_pes, const std::function<int(int)>& host_of) {
  std::vector<int> numbers;
  for (int pe = 0; pe < num_pes; ++pe) numbers.push_back(host_of(pe));
  return HostGroups::make(numbers);
}

TEST(PairPlan, ThePlacesBeyondAPowerOfTwoGiveFirstAndGetLast) {
  for (const int size : {1, 2, 5, 8, 13}) {
    for (int place = 0; place < size; ++place) {
      const PairPlan plan(place, size);
      for (int step = 0; step < plan.num_steps(); ++step) {
        const int peer = plan.peer(step);
        if (peer == -1) continue;
        EXPECT_LT(peer, size);
        EXPECT_EQ(PairPlan(peer, size).peer(step), place);
        EXPECT_EQ(PairPlan(peer, size).sends(step), plan.receives(step));
        const bool is_round = step > 0 && !plan.is_last(step);
        EXPECT_EQ(plan.sends(step) && plan.receives(step), is_round);
      }
    }
  }
  const PairPlan outer(6, 7);  // rounds among 0 to 3
  EXPECT_EQ(outer.num_steps(), 4);
  EXPECT_EQ(outer.peer(0), 2);
  EXPECT_TRUE(outer.sends(0));
  EXPECT_EQ(outer.peer(1), -1);
  EXPECT_EQ(outer.peer(3), 2);
  EXPECT_TRUE(outer.receives(3));
}

TEST(ExchangePlan, EveryPeEndsWithThePartsOfAllOnce) {
  for (int num_pes = 1; num_pes <= 70; ++num_pes) {
    for (const std::set<int>& one : run_plan(num_pes))
      EXPECT_EQ(one.size(), static_cast<std::size_t>(num_pes));
  }
}

TEST(ExchangePlan, SoItDoesOnSeveralHosts) {
  const std::vector<std::function<int(int)>> layouts = {[](int pe) { return pe / 4; },
                                                        [](int pe) { return pe % 3; },
                                                        [](int pe) { return pe < 1 ? 7 : pe / 6; }};
  for (int num_pes = 1; num_pes <= 70; ++num_pes) {
    for (const auto& layout : layouts) {
      const auto hosts = hosts_by(num_pes, layout);
      for (const std::set<int>& one : run_plan(num_pes, hosts.get()))
        EXPECT_EQ(one.size(), static_cast<std::size_t>(num_pes));
    }
  }
}

TEST(ExchangePlan, OnePeOfAHostExchangesWithOtherHosts) {
  const auto hosts = hosts_by(16, [](int pe) { return pe / 4; });
  for (int pe = 0; pe < 16; ++pe) {
    const ExchangePlan plan(pe, 16, hosts.get());
    int across = 0;
    for (int step = 0; step < plan.num_steps(); ++step) {
      const int peer = plan.peer(step);
      if (peer >= 0 && hosts->host_of(peer) != hosts->host_of(pe)) ++across;
    }
    EXPECT_EQ(across, pe % 4 == 0 ? 2 : 0) << pe;
  }
}

// Each PE that has begun sends the step's part; a PE that has not begins when a part reaches it. PE `first` begins.
int reached_from(int first, int num_pes, const HostGroups* hosts) {
  std::vector<int> at(static_cast<std::size_t>(num_pes), -1);  // the step of each PE that has begun
  std::set<std::pair<int, int>> arrived;                       // PE and step
  at[static_cast<std::size_t>(first)] = 0;
  for (bool moves = true; moves;) {
    moves = false;
    for (int pe = 0; pe < num_pes; ++pe) {
      const ExchangePlan plan(pe, num_pes, hosts);
      int& step = at[static_cast<std::size_t>(pe)];
      for (; step >= 0 && step < plan.num_steps(); ++step) {
        const int peer = plan.peer(step);
        if (peer < 0) continue;
        if (plan.sends(step) && arrived.emplace(peer, step).second) {
          moves = true;
          if (at[static_cast<std::size_t>(peer)] < 0) at[static_cast<std::size_t>(peer)] = 0;
        }
        if (plan.receives(step) && !arrived.contains({pe, step})) break;
        moves = true;
      }
    }
  }
  int ended = 0;
  for (const int step : at) ended += step == ExchangePlan(0, num_pes, hosts).num_steps() ? 1 : 0;
  return ended;
}

TEST(ExchangePlan, OnePeReachesAllIfItSaysSo) {
  const std::vector<std::function<int(int)>> layouts = {
      [](int) { return 0; }, [](int pe) { return pe / 2; }, [](int pe) { return pe / 4; },
      [](int pe) { return pe % 2; }, [](int pe) { return pe / 3; }};
  int num_that_do = 0;
  for (int num_pes = 1; num_pes <= 32; ++num_pes) {
    for (const auto& layout : layouts) {
      const auto hosts = hosts_by(num_pes, layout);
      if (!ExchangePlan::reaches_all(num_pes, hosts.get())) continue;
      ++num_that_do;
      for (int first = 0; first < num_pes; ++first)
        EXPECT_EQ(reached_from(first, num_pes, hosts.get()), num_pes) << first << " of " << num_pes;
    }
  }
  EXPECT_GT(num_that_do, 20);
  EXPECT_FALSE(ExchangePlan::reaches_all(3, nullptr));
  EXPECT_LT(reached_from(0, 6, nullptr), 6);
}

TEST(ExchangePlan, TheStepsOfManyPesFit) {
  EXPECT_LE(ExchangePlan(0, 2'147'483'647).num_steps(), ExchangePlan::kMaxSteps);
}

}  // namespace
}  // namespace weft::runtime
