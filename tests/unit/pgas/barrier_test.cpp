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

// Rank 1 is in another collective; `late`: the rank that begins second.
TEST_P(Barriers, AgainstAnotherCollectiveEndTheJob) {
  if (GetParam() == 1) GTEST_SKIP() << "one rank cannot differ from others";
  for (const int late : {0, 1}) {
    TeamJob job(GetParam());
    const std::string failure = job.run_on_all([late](World& world) -> Task<> {
      if (world.rank() == late) {
        for (int i = 0; i < 20; ++i) co_await runtime::yield_now(world.runtime());
      }
      if (world.rank() == 1) static_cast<void>(co_await world.allreduce(1, Reducer::kSum));
      co_await world.barrier();
    });
    EXPECT_NE(failure.find("PE 1: rank "), std::string::npos) << failure;
    EXPECT_NE(failure.find("calls barrier 0 of a team after 0 other collectives, and this rank after 1 (the "
                           "last is allreduce); all ranks of a team call"),
              std::string::npos)
        << failure;
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
    EXPECT_NE(failure.find("calls barrier 0 of a team after "), std::string::npos) << failure;
  }
}

TEST(Barrier, RefusesANoteThatNoRankSends) {
  const auto failure = [](std::uint64_t round, int count, int barriers_before) {
    TeamJob job(4);
    return job.run_on_all([round, count, barriers_before](World& world) -> Task<> {
      for (int i = 0; i < barriers_before; ++i) co_await world.barrier();
      for (int i = 0; world.rank() == 3 && i < count; ++i) {
        const runtime::HandlerId first = first_team_handler(world);
        const pgas::BarrierNote note{{}, 0, round, 0};
        auto message =
            runtime::Message::pack(world.runtime(), static_cast<runtime::HandlerId>(first + 1), note);
        message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
        world.runtime().send(1, std::move(message));
      }
      co_await world.runtime().quiescence();
      co_await world.barrier();
    });
  };
  const auto says = [&](std::uint64_t round, int count, int barriers_before, const std::string& words) {
    const std::string said = failure(round, count, barriers_before);
    EXPECT_NE(said.find("rank 3 sent a note of round " + words), std::string::npos) << said;
  };
  says(0, 1, 0, "0 of a barrier, which it does not send");
  says(2, 1, 0, "2 of a barrier, which it does not send");
  says(~0ULL, 1, 0, "18446744073709551615 of a barrier, which it does not send");
  // Rank 3 sends this one to rank 1, once.
  says(1, 2, 0, "1 of a barrier a second time");
  says(1, 1, 1, "1 of a barrier that is over");
}

}  // namespace
}  // namespace weft::testing
