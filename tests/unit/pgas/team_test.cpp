#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::Team;
using pgas::World;

int double_it(int value) { return 2 * value; }
std::pair<int, int> rank_in(const Team& team) { return {team.rank(), team.size()}; }
int size_of_argument(Team team) { return team ? team.size() : 0; }

TEST(Team, TheWorldHasAllPes) {
  TeamJob job(3);
  for (int pe = 0; pe < 3; ++pe) {
    const World& world = job.world(pe);
    EXPECT_EQ(world.rank(), pe);
    EXPECT_EQ(world.size(), 3);
    EXPECT_EQ(world.members(), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(world.pe_of(2), 2);
    EXPECT_EQ(world.rank_of_pe(1), 1);
    EXPECT_EQ(world.rank_of_pe(3), -1);
    EXPECT_THROW(world.pe_of(3), Error);
    EXPECT_EQ(&world.world(), &world);
  }
}

TEST(Team, SplitOrdersByKeyAndThenByRank) {
  TeamJob job(6);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    // Colours 0 and 1; in colour 0 the keys turn the order around, in colour 1 they are equal.
    const int colour = world.rank() % 2;
    const Team team = co_await world.split(colour, colour == 0 ? -world.rank() : 7);
    EXPECT_EQ(team.size(), 3);
    EXPECT_EQ(team.members(), colour == 0 ? (std::vector<int>{4, 2, 0}) : (std::vector<int>{1, 3, 5}));
    EXPECT_EQ(team.pe_of(team.rank()), world.rank());
    EXPECT_EQ(team.rank_of_pe(world.rank()), team.rank());
    EXPECT_EQ(team.rank_of_pe(1 - colour), -1);
    const auto there = co_await team.rpc<&rank_in>((team.rank() + 1) % 3);
    EXPECT_EQ(there, std::pair((team.rank() + 1) % 3, 3));
    co_await team.barrier();
  }),
            "");
}

TEST(Team, AMemberOfNoTeamGetsNone) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const Team team = co_await world.split(world.rank() == 1 ? pgas::kNoTeam : 4, 0);
    EXPECT_EQ(static_cast<bool>(team), world.rank() != 1);
    if (team) {
      EXPECT_EQ(team.members(), (std::vector<int>{0, 2}));
      const int sum = co_await team.allreduce(world.rank(), Reducer::kSum);
      EXPECT_EQ(sum, 2);
    }
  }),
            "");
}

TEST(Team, NumbersDifferAndNoPeGivesThemAll) {
  TeamJob job(4);
  std::set<std::pair<std::uint32_t, std::uint32_t>> leaders;
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    std::vector<Future<Team>> started;
    for (int i = 0; i < 6; ++i)
      started.push_back(world.split(i % 2 == 0 ? world.rank() / 2 : world.rank(), 0));
    std::set<std::pair<std::uint32_t, std::uint32_t>> mine;
    for (const auto& future : started) {
      const Team team = co_await future;
      EXPECT_EQ(team.id().leader_pe, static_cast<std::uint32_t>(team.pe_of(0)));
      EXPECT_TRUE(mine.emplace(team.id().leader_pe, team.id().number).second);
      const bool is_new = team.rank() != 0 || leaders.emplace(team.id().leader_pe, team.id().number).second;
      EXPECT_TRUE(is_new);
    }
  }),
            "");
  EXPECT_EQ(leaders.size(), 3U * 2 + 3U * 4);
}

TEST(Team, CanBeSplitAgain) {
  TeamJob job(7);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    Team team = world;
    while (team.size() > 1) {
      const int half = team.size() / 2;
      const bool is_low = team.rank() < half;
      const int expected = is_low ? half : team.size() - half;
      Team smaller = co_await team.split(is_low ? 0 : 1, team.rank());
      EXPECT_EQ(smaller.size(), expected);
      const int count = co_await smaller.allreduce(1, Reducer::kSum);
      EXPECT_EQ(count, expected);
      team = smaller;
    }
  }),
            "");
}

// A PE that has its team sends to one whose split has not ended: PE 1 takes no turns meanwhile.
TEST(Team, MessagesWaitForATeamThatIsNotMadeYet) {
  TeamJob job(2);
  std::vector<Future<Team>> splits = {job.world(0).split(0, 0), job.world(1).split(0, 0)};
  const auto step = [&](int pe) { static_cast<void>(job.runtime(pe).step()); };
  for (int i = 0; i < 10 && !splits[0].is_ready(); ++i) step(0);
  ASSERT_TRUE(splits[0].is_ready());
  ASSERT_FALSE(splits[1].is_ready());
  const Team first = splits[0].get();
  std::vector<int> values(1000, 5);
  const Future<int> call = first.rpc<&double_it>(1, 21);
  const Future<> barrier = first.barrier();
  const Future<> copied = first.broadcast_in_place(std::span(values), 0);
  const Future<int> sum = first.allreduce(3, Reducer::kSum);
  for (int i = 0; i < 10; ++i) step(0);
  // PE 1 gets the messages of the team in the turn in which its part of the split arrives, or before.
  std::vector<int> theirs(1000, 0);
  ASSERT_EQ(job.run_until([&] { return splits[1].is_ready(); }), "");
  const Team second = splits[1].get();
  const Future<> their_barrier = second.barrier();
  const Future<> their_copy = second.broadcast_in_place(std::span(theirs), 0);
  const Future<int> their_sum = second.allreduce(4, Reducer::kSum);
  ASSERT_EQ(job.run_until([&] {
    return call.is_ready() && barrier.is_ready() && copied.is_ready() && sum.is_ready() &&
           their_barrier.is_ready() && their_copy.is_ready() && their_sum.is_ready();
  }),
            "");
  EXPECT_EQ(call.get(), 42);
  EXPECT_EQ(theirs, values);
  EXPECT_EQ(sum.get(), 7);
  EXPECT_EQ(their_sum.get(), 7);
}

TEST(Team, TravelsAsAnArgument) {
  TeamJob job(4);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const Team pair = co_await world.split(world.rank() / 2, 0);
    co_await world.barrier();
    const int other = world.rank() ^ 1;
    const int size = co_await world.rpc<&size_of_argument>(other, pair);
    EXPECT_EQ(size, 2);
    const int none = co_await world.rpc<&size_of_argument>(other, Team());
    EXPECT_EQ(none, 0);
    const std::string failure = co_await failure_of(world.rpc<&size_of_argument>(world.rank() ^ 2, pair));
    EXPECT_NE(failure.find("of which it is no member"), std::string::npos) << failure;
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
