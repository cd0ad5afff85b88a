#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::World;

class Barriers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Barriers, ::testing::Values(1, 2, 3, 4, 5, 7),
                         ::testing::PrintToStringParamName());

TEST_P(Barriers, WaitForAll) {
  const int size = GetParam();
  TeamJob job(size);
  std::vector<int> entered(static_cast<std::size_t>(size), 0);
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    std::mt19937 random(static_cast<unsigned>(world.rank()) + 1);
    for (int round = 1; round <= 20; ++round) {
      for (unsigned turns = random() % 5; turns > 0; --turns) co_await runtime::yield_now(world.runtime());
      entered[static_cast<std::size_t>(world.rank())] = round;
      co_await world.barrier();
      for (const int other : entered) EXPECT_GE(other, round);
    }
  }),
            "");
}

TEST_P(Barriers, MayBeEnteredAhead) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<Future<>> entered;
    for (int i = 0; i < 10; ++i) entered.push_back(world.barrier());
    for (std::size_t i = entered.size(); i-- > 0;) co_await entered[i];
  }),
            "");
}

TEST(Barrier, OfTwoTeamsDoNotWaitForEachOther) {
  TeamJob job(4);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const pgas::Team half = co_await world.split(world.rank() / 2, 0);
    if (world.rank() < 2) {
      for (int i = 0; i < 5; ++i) co_await half.barrier();
    }
    co_await world.barrier();
    if (world.rank() >= 2) co_await half.barrier();
  }),
            "");
}

// With other PEs it needs processes: tests/multiproc/test_pgas.py.
TEST(Barrier, BlockingOfOneRankReturns) {
  TeamJob job(1);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    world.blocking_barrier();
    co_await world.barrier();
  }),
            "");
}

// The rank that is refused has not arrived, so the next barrier of all is the first one.
TEST(Barrier, BlockingOutsideOfTheSchedulerIsRefused) {
  TeamJob job(2);
  EXPECT_THROW(job.world(0).blocking_barrier(), Error);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> { co_await world.barrier(); }), "");
}

class BarriersOfSeveral : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, BarriersOfSeveral, ::testing::Values(2, 3, 4, 5, 7),
                         ::testing::PrintToStringParamName());

// Rank 1 is in another collective; `late`: the rank that begins second.
TEST_P(BarriersOfSeveral, AgainstAnotherCollectiveEndTheJob) {
  for (const int late : {0, 1}) {
    TeamJob job(GetParam());
    const std::string failure = job.run_on_all([late](World& world) -> Task<> {
      if (world.rank() == late) {
        for (int i = 0; i < 20; ++i) co_await runtime::yield_now(world.runtime());
      }
      if (world.rank() == 1) static_cast<void>(co_await world.allreduce(1, Reducer::kSum));
      co_await world.barrier();
    });
    const bool names_both =
        failure.find("calls barrier and this rank allreduce; all ranks") != std::string::npos ||
        failure.find("calls allreduce and this rank barrier; all ranks") != std::string::npos;
    EXPECT_TRUE(names_both) << failure;
  }
}

TEST(Barrier, InAnotherOrderEndsTheJob) {
  for (const int late : {0, 1}) {
    TeamJob job(2);
    const std::string failure = job.run_on_all([late](World& world) -> Task<> {
      if (world.rank() == late) {
        for (int i = 0; i < 20; ++i) co_await runtime::yield_now(world.runtime());
      }
      std::vector<Future<>> barriers;
      if (world.rank() == 0) barriers.push_back(world.barrier());
      const Future<int> sum = world.allreduce(1, Reducer::kSum);
      if (world.rank() == 1) barriers.push_back(world.barrier());
      static_cast<void>(co_await sum);
      co_await barriers[0];
    });
    EXPECT_NE(failure.find("all ranks of a team call the same collectives in the same order"),
              std::string::npos)
        << failure;
  }
}

}  // namespace
}  // namespace weft::testing
