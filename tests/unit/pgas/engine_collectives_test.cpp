// Collectives of teams that the engine carries out: sizes on both sides of its limits, ranks that come late,
// ranks that disagree.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/device_memory.h"
#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::Team;
using pgas::World;

Task<> come_late(World& world, unsigned seed) {
  std::mt19937 random(seed * 31 + static_cast<unsigned>(world.rank()));
  for (unsigned turns = random() % 40; turns > 0; --turns) co_await runtime::yield_now(world.runtime());
}

// PEs, and the host of each one.
using Places = std::pair<int, std::vector<int>>;
class EngineCollectives : public ::testing::TestWithParam<Places> {
 protected:
  static int size() { return GetParam().first; }
  struct Job : TeamJob {
    Job() : TeamJob(size(), "loopback", GetParam().second) {}
  };
};
INSTANTIATE_TEST_SUITE_P(OnOneHost, EngineCollectives,
                         ::testing::Values(Places{1, {}}, Places{2, {}}, Places{3, {}}, Places{4, {}},
                                           Places{5, {}}, Places{6, {}}));
INSTANTIATE_TEST_SUITE_P(OnHosts, EngineCollectives,
                         ::testing::Values(Places{3, {0, 1, 2}}, Places{4, {0, 0, 1, 1}},
                                           Places{6, {0, 1, 0, 2, 1, 0}}));

class EngineCollectivesOfSeveral : public EngineCollectives {};
INSTANTIATE_TEST_SUITE_P(OnOneHost, EngineCollectivesOfSeveral,
                         ::testing::Values(Places{2, {}}, Places{3, {}}, Places{4, {}}, Places{5, {}},
                                           Places{6, {}}));
INSTANTIATE_TEST_SUITE_P(OnHosts, EngineCollectivesOfSeveral,
                         ::testing::Values(Places{3, {0, 1, 2}}, Places{4, {0, 0, 1, 1}},
                                           Places{6, {0, 1, 0, 2, 1, 0}}));

// `all`: the sum of the ranks and one of each.
Task<> check_buffers(const Team& team, std::size_t count) {
  const auto mine = static_cast<std::uint8_t>(team.rank() + 1);
  const auto all = static_cast<std::uint8_t>(team.size() * (team.size() + 1) / 2);
  std::vector<std::uint8_t> values(count, mine);
  co_await team.allreduce_in_place(std::span(values), Reducer::kSum);
  EXPECT_EQ(values, std::vector<std::uint8_t>(count, all));
  for (int root = 0; root < team.size(); root += 2) {
    values.assign(count, mine);
    co_await team.broadcast_in_place(std::span(values), root);
    EXPECT_EQ(values, std::vector<std::uint8_t>(count, static_cast<std::uint8_t>(root + 1)));
    values.assign(count, mine);
    co_await team.reduce_in_place(std::span(values), Reducer::kSum, root);
    EXPECT_EQ(values, std::vector<std::uint8_t>(count, team.rank() == root ? all : mine));
    values.assign(count, 6);
    co_await team.reduce_in_place(std::span(values), Reducer::kLogicalAnd, root);
    EXPECT_EQ(values, std::vector<std::uint8_t>(count, team.rank() == root ? 1 : 6));
  }
}

TEST_P(EngineCollectives, BuffersOfAllSizes) {
  for (const std::size_t count : {0U, 1U, 7U, 1025U, 2049U, 8193U, 20'000U, 32'767U, 32'768U, 65'536U,
                                  65'537U, 1U << 20, (1U << 20) + 1}) {
    Job job;
    EXPECT_EQ(job.run_on_all([count](World& world) -> Task<> {
      co_await come_late(world, static_cast<unsigned>(count));
      co_await check_buffers(world, count);
    }),
              "")
        << count;
  }
}

// The ranks of a team have other PEs than those of the world.
TEST_P(EngineCollectives, OfTeamsAfterASplit) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const Team team = co_await world.split(world.rank() % 2, -world.rank());
    for (unsigned round = 0; round < 5; ++round) {
      co_await come_late(world, round);
      co_await check_buffers(team, 3000 * round);
      const int sum = co_await team.allreduce(team.rank(), Reducer::kSum);
      EXPECT_EQ(sum, team.size() * (team.size() - 1) / 2);
      co_await team.barrier();
    }
  }),
            "");
}

struct Triple {
  double a = 0;
  int b = 0;
  bool operator==(const Triple&) const = default;
};
struct Large {
  std::byte bytes[200];
};

TEST_P(EngineCollectives, Values) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    for (int root = 0; root < world.size(); ++root) {
      co_await come_late(world, static_cast<unsigned>(root));
      const Triple mine{1.5 * world.rank(), world.rank()};
      const Triple theirs = co_await world.broadcast(mine, root);
      EXPECT_EQ(theirs, (Triple{1.5 * root, root}));
      const bool is_even = co_await world.broadcast(world.rank() % 2 == 0, root);
      EXPECT_EQ(is_even, root % 2 == 0);
      const Large large = co_await world.broadcast(Large{{static_cast<std::byte>(world.rank())}}, root);
      EXPECT_EQ(large.bytes[0], static_cast<std::byte>(root));
      const std::optional<float> most =
          co_await world.reduce(static_cast<float>(world.rank()), Reducer::kMax, root);
      EXPECT_EQ(most.has_value(), world.rank() == root);
      EXPECT_EQ(most.value_or(0), world.rank() == root ? world.size() - 1 : 0);
      const std::int8_t sum = co_await world.allreduce(std::int8_t{3}, Reducer::kSum);
      EXPECT_EQ(sum, 3 * world.size());
      const bool any = co_await world.allreduce(world.rank() == root, Reducer::kLogicalOr);
      EXPECT_TRUE(any);
    }
  }),
            "");
}

// Device memory of the engine's sizes goes through the host, and its ranks serve those that have host memory.
TEST_P(EngineCollectives, DeviceMemoryOnSomeRanks) {
  for (const std::size_t count : {1U, 5000U, 20'000U}) {
    Job job;
    EXPECT_EQ(job.run_on_all([count](World& world) -> Task<> {
      const bool is_device = world.rank() % 2 == 0;
      memory::Place place;
      if (is_device) place = weft::device_of(world.runtime(), memory::Kind::kEmulated);
      DeviceArray<int> array(world.runtime(), count, place);
      const auto elements = [&] {
        auto* const first = reinterpret_cast<int*>(view(world.runtime().memory(), array.buffer()));
        return std::span(first, count);
      };
      for (int root = 0; root < world.size(); ++root) {
        for (int& one : elements()) one = world.rank() + 1;
        co_await world.reduce_in_place(array.span(), Reducer::kMax, root);
        EXPECT_EQ(elements().back(), world.rank() == root ? world.size() : world.rank() + 1);
        co_await world.allreduce_in_place(array.span(), Reducer::kMin);
        EXPECT_EQ(elements().back(), root == 0 && world.size() > 1 ? 2 : 1);
        for (int& one : elements()) one = world.rank();
        co_await world.broadcast_in_place(array.span(), root);
        EXPECT_EQ(elements().front(), root);
        EXPECT_EQ(elements().back(), root);
      }
    }),
              "")
        << count;
  }
}

// Each rank that depends on the wrong size gets the same sentence, and the next operations are right.
TEST_P(EngineCollectivesOfSeveral, OneRankWithAnotherSize) {
  for (const std::size_t count : {4U, 20'000U}) {
    Job job;
    EXPECT_EQ(job.run_on_all([count](World& world) -> Task<> {
      for (int wrong = 0; wrong < world.size(); ++wrong) {
        std::vector<double> values(world.rank() == wrong ? count + 1 : count);
        const std::string all =
            co_await failure_of(world.allreduce_in_place(std::span(values), Reducer::kSum));
        EXPECT_NE(all.find("all ranks give equally many elements"), std::string::npos) << all;
        if (count == 4) {
          EXPECT_NE(all.find("bytes to allreduce_in_place and rank "), std::string::npos) << all;
        }
        const std::string one =
            co_await failure_of(world.reduce_in_place(std::span(values), Reducer::kSum, 0));
        if (world.rank() == 0) {
          EXPECT_NE(one.find("all ranks give equally many elements"), std::string::npos) << one;
        }
        co_await world.barrier();
      }
    }),
              "")
        << count;
  }
}

using Start = std::function<void(World&, std::vector<Future<>>&)>;

template <class T>
void await_too(World& world, const Future<T>& future, std::vector<Future<>>& all) {
  const Future<> done(world.runtime());
  future.then([done](const Future<T>&) { done.set(); });
  all.push_back(done);
}

template <std::size_t kCount>
void sum_in_place(World& world, std::vector<Future<>>& all) {
  static std::vector<int> memory[8];
  std::vector<int>& mine = memory[world.rank()];
  mine.assign(kCount, 1);
  await_too(world, world.allreduce_in_place(std::span(mine), Reducer::kSum), all);
}

// Each pair of these: one rank calls the other one.
const std::vector<std::pair<std::string, Start>> kOperations = {
    {"barrier", [](World& world, auto& all) { await_too(world, world.barrier(), all); }},
    {"allreduce", [](World& world, auto& all) { await_too(world, world.allreduce(1, Reducer::kSum), all); }},
    {"allreduce",  // of another type
     [](World& world, auto& all) { await_too(world, world.allreduce(1.0F, Reducer::kSum), all); }},
    {"allreduce",  // not by the engine
     [](World& world, auto& all) {
       await_too(world, world.allreduce(std::vector<int>(2), Reducer::kSum), all);
     }},
    {"allgather", [](World& world, auto& all) { await_too(world, world.allgather(1), all); }},
    {"broadcast", [](World& world, auto& all) { await_too(world, world.broadcast(1, 0), all); }},
    {"broadcast", [](World& world, auto& all) { await_too(world, world.broadcast(1, 1), all); }},
    {"reduce", [](World& world, auto& all) { await_too(world, world.reduce(1, Reducer::kSum, 0), all); }},
    {"allreduce_in_place", &sum_in_place<10>},
    {"allreduce_in_place", &sum_in_place<10'000>},
    {"allreduce_in_place", &sum_in_place<400'000>},
};

// The ranks may wait for one another without a message from the one call to the other: then they ask.
TEST_P(EngineCollectivesOfSeveral, RanksThatDisagreeEndTheJob) {
  for (const auto& one : kOperations) {
    for (const auto& other : kOperations) {
      if (&one == &other) continue;
      for (const int differing : {0, size() - 1}) {
        Job job;
        const std::string failure = job.run_on_all([&](World& world) -> Task<> {
          co_await come_late(world, static_cast<unsigned>(differing));
          std::vector<Future<>> all;
          (world.rank() == differing ? other : one).second(world, all);
          await_too(world, world.barrier(), all);
          for (const Future<>& future : all) co_await future;
        });
        // On several hosts two sizes may take the same way: then the collective fails, and the job goes on.
        if (one.first == "allreduce_in_place" && one.first == other.first && failure.empty()) continue;
        EXPECT_NE(failure.find("all ranks of a team call the same collectives in the same order"),
                  std::string::npos)
            << one.first << ", and rank " << differing << " " << other.first << ": " << failure;
      }
    }
  }
}

// Futures are dropped, and the job ends with calls under way.
TEST(EngineCollective, MayBeUnderWayAtTheEnd) {
  TeamJob job(3);
  std::vector<int> values(5000, 1);
  DeviceArray<int> array(job.runtime(0), 100, weft::device_of(job.runtime(0), memory::Kind::kEmulated));
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    World& world = pgas::world_of(runtime);
    static_cast<void>(world.allreduce(1, Reducer::kSum));
    static_cast<void>(world.allreduce_in_place(std::span(values), Reducer::kSum));
    static_cast<void>(world.allreduce_in_place(array.span(), Reducer::kSum));
    static_cast<void>(world.barrier());
    const auto wait = [](World& late) -> Task<> { co_await late.allreduce(1, Reducer::kSum); };
    job.runtime(1).spawn(wait(job.world(1)), "a rank that waits");
    for (int i = 0; i < 10; ++i) co_await runtime::yield_now(runtime);
  }),
            "");
}

// Nothing is under way when quiescence is detected: all that the broadcasts have sent has arrived.
TEST(EngineCollective, QuiescenceCountsMessages) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<Future<int>> results;
    for (int i = 0; world.rank() == 0 && i < 30; ++i) results.push_back(world.broadcast(i, 0));
    co_await world.runtime().quiescence();
    for (int i = 0; world.rank() == 1 && i < 30; ++i) results.push_back(world.broadcast(-1, 0));
    if (world.rank() == 1) {
      EXPECT_TRUE(results[0].is_ready());
    }
    for (int i = 0; i < 30; ++i) {
      const int got = co_await results[static_cast<std::size_t>(i)];
      EXPECT_EQ(got, i);
    }
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
