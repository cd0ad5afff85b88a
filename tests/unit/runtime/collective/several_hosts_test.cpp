// Collectives of jobs whose PEs are on several hosts, as the runtime is told.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "runtime/collective/exchange_plan.h"
#include "runtime/collective/reductions.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/runtime/collective/reducing_job.h"

namespace weft::runtime {
namespace {

using HostOfPe = std::vector<int>;

const std::vector<HostOfPe>& job_layouts() {
  static const std::vector<HostOfPe> all = {{0, 0, 1, 1},
                                            {0, 1, 0, 1},
                                            {0, 0, 0, 0, 1, 1, 1, 1},
                                            {0, 1, 2, 0, 1, 2, 0},
                                            {0, 1, 1, 1, 1, 1},
                                            {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9}};
  return all;
}

TEST(SeveralHosts, EachPeGetsEachResultOnceOnEachRoute) {
  for (const HostOfPe& hosts : job_layouts()) {
    const int num_pes = static_cast<int>(hosts.size());
    for (const Route route : {Route::kTree, Route::kExchange, Route::kMovingExchange}) {
      ReducingJob reducing(num_pes, 0, "loopback", route, hosts);
      if (route == Route::kMovingExchange &&
          !ExchangePlan::reaches_all(num_pes, reducing.job.runtime(0).host_groups()))
        continue;
      constexpr std::uint64_t kReductions = 10;
      for (std::uint64_t i = 0; i < kReductions; ++i) {
        for (int pe = 0; pe < num_pes; ++pe) reducing.contribute(pe, i, std::int64_t{1} << pe);
      }
      EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == kReductions; }), "");
      for (const auto& one : reducing.results)
        EXPECT_EQ(one, std::vector<std::int64_t>(kReductions, (std::int64_t{1} << num_pes) - 1));
    }
  }
}

TEST(SeveralHosts, AContributionThatComesLateReachesAllPes) {
  for (const int late_pe : {0, 1, 2, 3}) {
    ReducingJob reducing(4, 1, "loopback", Route::kExchange, {0, 0, 1, 1});
    for (int pe = 0; pe < 4; ++pe) reducing.contribute(pe, 0, 1);
    reducing.settle();
    EXPECT_EQ(reducing.least_results(), 0U);
    reducing.contribute(late_pe, 0, 100);
    EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 1; }), "");
    for (const auto& one : reducing.results) EXPECT_EQ(one, std::vector<std::int64_t>{104});
  }
}

TEST(SeveralHosts, AHostThatAllContributorsHaveLeftGetsTheResult) {
  ReducingJob reducing(8, 0, "loopback", Route::kMovingExchange, {0, 0, 0, 0, 1, 1, 1, 1});
  for (const int pe : {1, 4, 5, 6, 7}) reducing.move(pe, 2, 0);
  for (int pe = 0; pe < 8; ++pe) reducing.contribute(pe == 0 || pe == 3 ? pe : 2, 0, std::int64_t{1} << pe);
  EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 1; }), "");
  for (const auto& one : reducing.results) EXPECT_EQ(one, std::vector<std::int64_t>{255});
}

struct HostAdder : Chare<HostAdder> {
  Task<std::uint64_t> sum(int round) {
    const double mine = 1.0 / (1 + round + 7 * static_cast<int>(index()));
    co_return std::bit_cast<std::uint64_t>(co_await allreduce(mine, Reducer::kSum));
  }
  // The number of bytes that are right.
  std::size_t take(const std::vector<std::uint8_t>& bytes) {
    std::size_t right = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) right += bytes[i] == static_cast<std::uint8_t>(i * 7);
    return right;
  }
  void add(int value) {
    contribute(value, Reducer::kSum, proxy()[num_pes() - 1].target<&HostAdder::set_total>());
  }
  void set_total(int total) { total_.set(total); }
  Task<int> total() {
    total_ = Future<int>(runtime());
    proxy().send<&HostAdder::add>(3);
    co_return co_await total_;
  }

 private:
  Future<int> total_;
};

TEST(SeveralHosts, ChareCollectivesAreRight) {
  for (const HostOfPe& hosts : job_layouts()) {
    const int num_pes = static_cast<int>(hosts.size());
    testing::InProcessJob job(num_pes, "loopback", options_of(hosts));
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto adders = Group<HostAdder>::create(runtime);
      for (int round = 0; round < 5; ++round) {
        const std::vector<std::uint64_t> bits = co_await adders.call<&HostAdder::sum>(round);
        EXPECT_EQ(std::set<std::uint64_t>(bits.begin(), bits.end()).size(), 1U);
      }
      std::vector<std::uint8_t> bytes(200'000);
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
      const auto right = co_await adders.call<&HostAdder::take>(bytes);
      EXPECT_EQ(right, std::vector<std::size_t>(hosts.size(), bytes.size()));
      const int total = co_await adders[num_pes - 1].call<&HostAdder::total>();
      EXPECT_EQ(total, 3 * num_pes);
      co_await runtime.quiescence();
    }),
              "");
  }
}

}  // namespace
}  // namespace weft::runtime
