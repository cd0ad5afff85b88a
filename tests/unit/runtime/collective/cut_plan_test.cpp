#include "runtime/collective/cut_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/collective/exchange_plan.h"

namespace weft::runtime {
namespace {

using Elements = std::vector<std::string>;  // how each has been merged, such as "((0+1)+2)"

std::string merged(const std::string& first, const std::string& second) {
  return std::string("(").append(first).append("+").append(second).append(")");
}

// What every PE has after an exchange of whole values.
std::string merged_by_exchange(int num_pes, const HostGroups* hosts) {
  Elements has;
  for (int pe = 0; pe < num_pes; ++pe) has.push_back(std::to_string(pe));
  const int num_steps = ExchangePlan(0, num_pes, hosts).num_steps();
  for (int step = 0; step < num_steps; ++step) {
    const Elements before = has;
    for (int pe = 0; pe < num_pes; ++pe) {
      const ExchangePlan plan(pe, num_pes, hosts);
      const int peer = plan.peer(step);
      if (peer < 0 || !plan.receives(step)) continue;
      const std::string& mine = before[static_cast<std::size_t>(pe)];
      const std::string& theirs = before[static_cast<std::size_t>(peer)];
      has[static_cast<std::size_t>(pe)] = plan.replaces(step) ? theirs
                                          : peer > pe         ? merged(mine, theirs)
                                                              : merged(theirs, mine);
    }
  }
  return has[0];
}

// Runs the steps of all PEs as messages would.
struct Simulation {
  Simulation(int num_pes, const HostGroups* hosts, std::size_t num_elements)
      : plans(),
        values(),
        next(static_cast<std::size_t>(num_pes)),
        has_sent(static_cast<std::size_t>(num_pes)) {
    for (int pe = 0; pe < num_pes; ++pe) {
      plans.push_back(plan_cut(pe, num_pes, hosts, num_elements));
      values.emplace_back(num_elements, std::to_string(pe));
    }
  }

  void run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (std::size_t pe = 0; pe < plans.size(); ++pe) {
        while (next[pe] < plans[pe].size() && advance(static_cast<int>(pe), plans[pe][next[pe]])) {
          ++next[pe];
          has_sent[pe] = false;
          moves = true;
        }
      }
    }
    for (std::size_t pe = 0; pe < plans.size(); ++pe)
      EXPECT_EQ(next[pe], plans[pe].size()) << "PE " << pe << " waits";
    EXPECT_TRUE(on_the_way.empty());
  }

  bool advance(int pe, const CutStep& step) {
    Elements& mine = values[static_cast<std::size_t>(pe)];
    if (!has_sent[static_cast<std::size_t>(pe)] && step.sent.count > 0) {
      const auto begin = mine.begin() + static_cast<std::ptrdiff_t>(step.sent.first);
      const bool is_new =
          on_the_way
              .emplace(
                  std::tuple(pe, step.peer, step.number),
                  std::pair(step.sent, Elements(begin, begin + static_cast<std::ptrdiff_t>(step.sent.count))))
              .second;
      EXPECT_TRUE(is_new) << "two parts with one name";
      if (crosses(pe, step.peer)) num_across += step.sent.count;
      num_sent += step.sent.count;
    }
    has_sent[static_cast<std::size_t>(pe)] = true;
    if (step.received.count == 0) return true;
    const auto found = on_the_way.find({step.peer, pe, step.number});
    if (found == on_the_way.end()) return false;
    EXPECT_EQ(found->second.first, step.received);
    for (std::size_t i = 0; i < step.received.count; ++i) {
      std::string& one = mine[step.received.first + i];
      const std::string& theirs = found->second.second[i];
      one = !step.merges ? theirs : step.in_front ? merged(theirs, one) : merged(one, theirs);
    }
    on_the_way.erase(found);
    return true;
  }

  std::function<bool(int, int)> crosses = [](int, int) { return false; };
  std::vector<std::vector<CutStep>> plans;
  std::vector<Elements> values;
  std::vector<std::size_t> next;
  std::vector<bool> has_sent;
  std::map<std::tuple<int, int, int>, std::pair<ElementRange, Elements>> on_the_way;
  std::size_t num_sent = 0;
  std::size_t num_across = 0;
};

void expect_same_as_exchange(int num_pes, const HostGroups* hosts) {
  const std::string expected = merged_by_exchange(num_pes, hosts);
  for (const std::size_t num_elements : {std::size_t{1}, std::size_t{5}, std::size_t{64}}) {
    Simulation simulation(num_pes, hosts, num_elements);
    simulation.run();
    for (const Elements& one : simulation.values) EXPECT_EQ(one, Elements(num_elements, expected)) << num_pes;
  }
}

std::shared_ptr<const HostGroups> groups_by(int num_pes, const std::function<int(int)>& host_of) {
  std::vector<int> numbers;
  for (int pe = 0; pe < num_pes; ++pe) numbers.push_back(host_of(pe));
  return HostGroups::make(numbers);
}

TEST(CutPlan, EachElementIsMergedAsByAnExchangeOfWholeValues) {
  for (int num_pes = 1; num_pes <= 20; ++num_pes) expect_same_as_exchange(num_pes, nullptr);
}

TEST(CutPlan, SoItIsOnSeveralHosts) {
  const std::vector<std::function<int(int)>> layouts = {
      [](int pe) { return pe / 4; }, [](int pe) { return pe % 2; }, [](int pe) { return pe % 3; },
      [](int pe) { return pe < 1 ? 7 : pe / 6; }, [](int pe) { return pe < 3 ? 0 : 1; }};
  for (int num_pes = 2; num_pes <= 20; ++num_pes) {
    for (const auto& layout : layouts) {
      const auto hosts = groups_by(num_pes, layout);
      if (hosts != nullptr) expect_same_as_exchange(num_pes, hosts.get());
    }
  }
}

TEST(CutPlan, APeSendsLessThanTwiceTheValue) {
  for (const int num_pes : {2, 4, 8, 16}) {
    Simulation simulation(num_pes, nullptr, 64);
    simulation.run();
    const auto pes = static_cast<std::size_t>(num_pes);
    EXPECT_EQ(simulation.num_sent, pes * (2 * 64 - 2 * 64 / pes));
  }
}

TEST(CutPlan, EachElementCrossesALinkOnceInEachDirection) {
  for (const int num_on_a_host : {1, 2, 4, 8}) {
    for (const bool is_round_robin : {false, true}) {
      const auto host_of = [&](int pe) { return is_round_robin ? pe % 2 : pe / num_on_a_host; };
      const auto hosts = groups_by(2 * num_on_a_host, host_of);
      Simulation simulation(2 * num_on_a_host, hosts.get(), 64);
      simulation.crosses = [&](int a, int b) { return host_of(a) != host_of(b); };
      simulation.run();
      EXPECT_EQ(simulation.num_across, 2 * 64U) << num_on_a_host;
    }
  }
}

}  // namespace
}  // namespace weft::runtime
