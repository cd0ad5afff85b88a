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

TEST(Barrier, BlockingOutsideOfTheSchedulerIsRefused) {
  TeamJob job(2);
  EXPECT_THROW(job.world(0).blocking_barrier(), Error);
}

TEST(Barrier, RefusesANoteThatNoRankSends) {
  const auto failure = [](std::uint64_t round) {
    TeamJob job(4);
    return job.run_on_all([round](World& world) -> Task<> {
      if (world.rank() == 3) {
        const runtime::HandlerId first = first_team_handler(world);
        const pgas::BarrierNote note{{}, 0, round};
        auto message =
            runtime::Message::pack(world.runtime(), static_cast<runtime::HandlerId>(first + 1), note);
        message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
        world.runtime().send(1, std::move(message));
      }
      co_await world.runtime().quiescence();
      co_await world.barrier();
    });
  };
  EXPECT_NE(failure(0).find("rank 3 sent a note of round 0"), std::string::npos);
  EXPECT_NE(failure(2).find("rank 3 sent a note of round 2"), std::string::npos);
  EXPECT_NE(failure(~0ULL).find("rank 3 sent a note of round"), std::string::npos);
  EXPECT_EQ(failure(1), "");  // rank 3 sends it to rank 1
}

}  // namespace
}  // namespace weft::testing
