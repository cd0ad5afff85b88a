#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::Team;
using pgas::World;

using Counts = std::map<std::string, int>;
Counts join(Counts a, Counts b) {
  for (const auto& [name, count] : b) a[name] += count;
  return a;
}
int refuse_three(int a, int b) {
  if (a == 3 || b == 3) throw std::domain_error("three is refused");
  return a + b;
}

class Collectives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, ::testing::Values(1, 2, 3, 4, 5, 7),
                         ::testing::PrintToStringParamName());

TEST_P(Collectives, BroadcastFromEachRank) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    for (int root = 0; root < world.size(); ++root) {
      const std::string mine = "from " + std::to_string(world.rank());
      const std::string got = co_await world.broadcast(mine, root);
      EXPECT_EQ(got, "from " + std::to_string(root));
      const std::vector<double> many =
          co_await world.broadcast(std::vector<double>(50'000, world.rank()), root);
      EXPECT_EQ(many, std::vector<double>(50'000, root));
    }
  }),
            "");
}

TEST_P(Collectives, ReduceToEachRank) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const int size = world.size();
    for (int root = 0; root < size; ++root) {
      const std::optional<int> sum = co_await world.reduce(world.rank() + 1, Reducer::kSum, root);
      EXPECT_EQ(sum.has_value(), world.rank() == root);
      if (sum) {
        EXPECT_EQ(*sum, size * (size + 1) / 2);
      }
      const Counts mine = {{"all", 1}, {std::to_string(world.rank()), 2}};
      const auto joined = co_await world.reduce<&join>(mine, root);
      EXPECT_EQ(joined.has_value(), world.rank() == root);
      if (joined) {
        EXPECT_EQ(joined->size(), static_cast<std::size_t>(size) + 1);
      }
      if (joined) {
        EXPECT_EQ(joined->at("all"), size);
      }
    }
  }),
            "");
}

TEST_P(Collectives, AllReduceWithEachReducer) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const int size = world.size();
    const int mine = world.rank() + 1;
    const int sum = co_await world.allreduce(mine, Reducer::kSum);
    EXPECT_EQ(sum, size * (size + 1) / 2);
    const double product = co_await world.allreduce(static_cast<double>(mine), Reducer::kProduct);
    EXPECT_EQ(product, std::tgamma(size + 1));
    const int least = co_await world.allreduce(mine, Reducer::kMin);
    EXPECT_EQ(least, 1);
    const int most = co_await world.allreduce(mine, Reducer::kMax);
    EXPECT_EQ(most, size);
    const int all = co_await world.allreduce(world.rank() == 0 ? 5 : 1, Reducer::kLogicalAnd);
    EXPECT_EQ(all, 1);
    const int any = co_await world.allreduce(world.rank() == 0 ? 5 : 0, Reducer::kLogicalOr);
    EXPECT_EQ(any, 1);
    const int odd = co_await world.allreduce(7, Reducer::kLogicalXor);
    EXPECT_EQ(odd, size % 2);
    const std::vector<int> several = {mine, -mine, 1};
    const std::vector<int> sums = co_await world.allreduce(several, Reducer::kSum);
    EXPECT_EQ(sums, (std::vector<int>{sum, -sum, size}));
    const Counts one = {{std::to_string(world.rank() % 2), 1}};
    const Counts joined = co_await world.allreduce<&join>(one);
    EXPECT_EQ(joined.at("0"), (size + 1) / 2);
  }),
            "");
}

// Sums of floating-point numbers depend on their order; all ranks have the same one.
TEST_P(Collectives, AllReduceGivesTheSameBitsToAll) {
  TeamJob job(GetParam());
  std::vector<double> sums(static_cast<std::size_t>(GetParam()));
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    std::mt19937 random(static_cast<unsigned>(world.rank()) + 17);
    const double mine = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), 3 * world.rank());
    sums[static_cast<std::size_t>(world.rank())] = co_await world.allreduce(mine, Reducer::kSum);
  }),
            "");
  for (const double sum : sums) EXPECT_EQ(sum, sums[0]);
}

TEST_P(Collectives, AllGatherIsInOrderOfRanks) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const auto size = static_cast<std::size_t>(world.size());
    const std::vector<int> ranks = co_await world.allgather(world.rank());
    std::vector<int> expected(size);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(ranks, expected);
    const std::string mine(static_cast<std::size_t>(world.rank()) * 100, 'a');
    const std::vector<std::string> texts = co_await world.allgather(mine);
    EXPECT_EQ(texts.size(), size);
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i].size(), i * 100);
  }),
            "");
}

struct NoBytes {
  void pup(Pup&) {}
};

TEST_P(Collectives, AllGatherOfValuesWithoutBytes) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const std::vector<NoBytes> all = co_await world.allgather(NoBytes());
    EXPECT_EQ(all.size(), static_cast<std::size_t>(world.size()));
  }),
            "");
}

// Rank 0 sends all of its broadcasts before the others have begun one.
TEST_P(Collectives, ARankMayBeFarAhead) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    constexpr int kMany = 3000;
    std::vector<Future<int>> results;
    if (world.rank() == 0) {
      for (int i = 0; i < kMany; ++i) results.push_back(world.broadcast(i, 0));
    }
    co_await world.runtime().quiescence();
    if (world.rank() != 0) {
      for (int i = 0; i < kMany; ++i) results.push_back(world.broadcast(-1, 0));
    }
    for (int i = 0; i < kMany; ++i) {
      const int got = co_await results[static_cast<std::size_t>(i)];
      EXPECT_EQ(got, i);
    }
  }),
            "");
}

// Many collectives of several teams at a time, awaited in another order.
TEST_P(Collectives, MayBeStartedAhead) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const Team parity = co_await world.split(world.rank() % 2, world.rank());
    std::vector<Future<int>> results;
    for (int i = 0; i < 10; ++i) {
      results.push_back(world.allreduce(i, Reducer::kSum));
      results.push_back(parity.allreduce(i, Reducer::kMax));
      results.push_back(world.broadcast(world.rank() * 100 + i, i % world.size()));
    }
    for (int i = 9; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(3 * i);
      const int root_value = co_await results[at + 2];
      EXPECT_EQ(root_value, i % world.size() * 100 + i);
      const int most = co_await results[at + 1];
      EXPECT_EQ(most, i);
      const int sum = co_await results[at];
      EXPECT_EQ(sum, i * world.size());
    }
  }),
            "");
}

TEST_P(Collectives, AFailureReachesAllThatDependOnIt) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    if (world.size() < 4) co_return;  // nothing is merged with the 3 of rank 3
    const std::string all = co_await failure_of(world.allreduce<&refuse_three>(world.rank()));
    EXPECT_EQ(all, "three is refused");
    const std::string one = co_await failure_of(world.reduce<&refuse_three>(world.rank(), 1));
    EXPECT_EQ(one == "three is refused", world.rank() == 1) << one;
    // Vectors of different lengths.
    const std::vector<int> uneven(static_cast<std::size_t>(world.rank()) + 1);
    const std::string lengths = co_await failure_of(world.allreduce(uneven, Reducer::kSum));
    EXPECT_NE(lengths, "nothing");
    const int sum = co_await world.allreduce(1, Reducer::kSum);
    EXPECT_EQ(sum, world.size());
  }),
            "");
}

// `late`: the rank that begins second.
std::string failure_of_different(int late, const std::function<Future<int>(World&)>& collective) {
  TeamJob job(2);
  return job.run_on_all([&](World& world) -> Task<> {
    if (world.rank() == late) {
      for (int i = 0; i < 20; ++i) co_await runtime::yield_now(world.runtime());
    }
    static_cast<void>(co_await collective(world));
  });
}

TEST(Collective, RanksThatCallDifferentOnesEndTheJob) {
  for (const int late : {0, 1}) {
    const std::string kinds = failure_of_different(late, [](World& world) {
      return world.rank() == 0 ? world.allreduce(1, Reducer::kSum) : world.broadcast(1, 0);
    });
    EXPECT_NE(kinds.find("PE 1: rank 0 calls allreduce and this rank broadcast; all ranks of a team call"),
              std::string::npos)
        << kinds;
    const std::string operators = failure_of_different(late, [](World& world) {
      return world.allreduce(1, world.rank() == 0 ? Reducer::kSum : Reducer::kMax);
    });
    EXPECT_NE(operators.find("allreduce with another type, operator or root"), std::string::npos)
        << operators;
    const std::string roots =
        failure_of_different(late, [](World& world) { return world.broadcast(1, world.rank()); });
    EXPECT_NE(roots.find("calls broadcast with root"), std::string::npos) << roots;
  }
}

TEST(Collective, RefusesWhatCannotBe) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    EXPECT_THROW(static_cast<void>(world.broadcast(1, 2)), Error);
    EXPECT_THROW(static_cast<void>(world.reduce(1, Reducer::kSum, -1)), Error);
    EXPECT_THROW(static_cast<void>(world.allreduce(1, Reducer::kGather)), Error);
    EXPECT_THROW(static_cast<void>(world.allreduce(std::string(), Reducer::kSum)), Error);
    const int sum = co_await world.allreduce(1, Reducer::kSum);
    EXPECT_EQ(sum, 2);
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
