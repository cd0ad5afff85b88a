#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::DistObject;
using pgas::World;

using List = DistObject<std::vector<int>>;
void append(List& list, int value) { list->push_back(value); }
std::size_t append_to_both(World&, List& first, const DistObject<std::string>& text, List& second) {
  first->push_back(1);
  second->push_back(2);
  return text->size();
}

TEST(DistObject, FetchesEachRanksValue) {
  TeamJob job(4);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    DistObject<std::string> name(world, "rank " + std::to_string(world.rank()));
    for (int rank = 0; rank < 4; ++rank) {
      const std::string theirs = co_await name.fetch(rank);
      EXPECT_EQ(theirs, "rank " + std::to_string(rank));
    }
    co_await world.barrier();
  }),
            "");
}

TEST(DistObject, AFetchWaitsForItsPeer) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    if (world.rank() == 1) {
      co_await world.runtime().quiescence();  // the fetch has arrived
    }
    DistObject<int> value(world, 10 + world.rank());
    if (world.rank() == 0) {
      const int theirs = co_await value.fetch(1);
      EXPECT_EQ(theirs, 11);
    }
    co_await world.barrier();
  }),
            "");
}

TEST(DistObject, IsAnArgumentOfCalls) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const int next = (world.rank() + 1) % 3;
    List first(world, {});
    co_await world.rpc<&append>(next, first, world.rank());
    // The others of this call may not be there yet.
    if (world.rank() == 2) {
      for (int i = 0; i < 20; ++i) co_await runtime::yield_now(world.runtime());
    }
    DistObject<std::string> text(world, std::string(static_cast<std::size_t>(world.rank()), 'x'));
    List second(world, {});
    const std::size_t length = co_await world.rpc<&append_to_both>(next, first, text, second);
    EXPECT_EQ(length, static_cast<std::size_t>(next));
    co_await world.barrier();
    EXPECT_EQ(*first, (std::vector<int>{(world.rank() + 2) % 3, 1}));
    EXPECT_EQ(*second, (std::vector<int>{2}));
    co_await world.barrier();
  }),
            "");
}

TEST(DistObject, OfATeam) {
  TeamJob job(4);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const pgas::Team pair = co_await world.split(world.rank() % 2, 0);
    DistObject<int> value(pair, world.rank());
    const int theirs = co_await value.fetch(1 - pair.rank());
    EXPECT_EQ(theirs, world.rank() ^ 2);
    co_await world.barrier();
  }),
            "");
}

// PE 1 makes the team, and its object, after the call has arrived.
TEST(DistObject, ACallWaitsForItsTeam) {
  TeamJob job(3);
  const pgas::TeamId id{0, 77};
  const auto make_team = [&](int pe) { return pgas::Team(&job.world(pe).state()->table.add(id, {0, 1})); };
  List first(make_team(0), {});
  const Future<> call = job.world(0).rpc<&append>(1, first, 5);
  for (int i = 0; i < 20; ++i) {
    for (int pe = 0; pe < 3; ++pe) static_cast<void>(job.runtime(pe).step());
  }
  EXPECT_FALSE(call.is_ready());
  const pgas::Team made = make_team(1);
  for (int i = 0; i < 20; ++i) {
    for (int pe = 0; pe < 3; ++pe) static_cast<void>(job.runtime(pe).step());
  }
  EXPECT_FALSE(call.is_ready());
  List second(made, {});
  EXPECT_EQ(job.run_until([&] { return call.is_ready(); }), "");
  EXPECT_EQ(call.state()->error(), nullptr);
  EXPECT_EQ(*second, (std::vector<int>{5}));
  // A PE that never makes the team.
  try {
    static_cast<void>(job.world(0).rpc<&append>(2, first, 5));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of which that PE is no member"), std::string::npos)
        << error.what();
  }
}

TEST(DistObject, OfATeamThatCannotExistIsRefused) {
  TeamJob job(2);
  for (const pgas::TeamId id : {pgas::TeamId{2, 1}, pgas::TeamId{1, 0}})
    EXPECT_THROW(static_cast<void>(pgas::rpc_detail::find_object(job.runtime(0), {id, 0, 0})), Error);
}

// The sanitized build sees a use of the team.
TEST(DistObject, MayOutliveTheJob) {
  std::unique_ptr<DistObject<int>> kept;
  {
    TeamJob job(2);
    EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
      if (world.rank() == 0) kept = std::make_unique<DistObject<int>>(world, 7);
      co_await world.barrier();
    }),
              "");
  }
  EXPECT_EQ(**kept, 7);
  kept.reset();
}

TEST(DistObject, ADestroyedOneIsAnError) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    auto value = std::make_unique<DistObject<int>>(world, 1);
    co_await world.barrier();
    if (world.rank() == 1) value.reset();
    co_await world.barrier();
    if (world.rank() == 0) {
      const std::string failure = co_await failure_of(value->fetch(1));
      EXPECT_NE(failure.find("the distributed object 0 of rank 1 has been destroyed"), std::string::npos)
          << failure;
    }
    co_await world.barrier();
  }),
            "");
}

TEST(DistObject, AnotherTypeIsAnError) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::unique_ptr<DistObject<int>> number;
    std::unique_ptr<DistObject<double>> real;
    if (world.rank() == 0) number = std::make_unique<DistObject<int>>(world, 1);
    if (world.rank() == 1) real = std::make_unique<DistObject<double>>(world, 2.5);
    if (world.rank() == 0) {
      const std::string failure = co_await failure_of(number->fetch(1));
      EXPECT_NE(failure.find("has another type than that of its caller"), std::string::npos) << failure;
    }
    co_await world.barrier();
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
