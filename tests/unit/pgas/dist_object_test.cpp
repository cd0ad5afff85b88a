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
