// Collectives that fail on one rank before it has sent anything: the others get the error, and the next collective is right.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::World;

constexpr const char* kDoesNotPack = "a negative value does not pack";

struct Picky {
  int value = 0;
  void pup(Pup& p) {
    if (!p.is_unpacking() && value < 0) throw std::domain_error(kDoesNotPack);
    p | value;
  }
};
Picky add_picky(Picky a, Picky b) { return {a.value + b.value}; }

// Why the call or its future failed; "nothing" if neither did.
template <class T>
Task<std::string> failure_of_call(std::function<Future<T>()> call) {
  std::optional<Future<T>> started;
  std::string failure;
  try {
    started.emplace(call());
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (started) failure = co_await failure_of(*started);
  co_return failure;
}

class FailedPacking : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, FailedPacking, ::testing::Values(1, 2, 3, 4, 5, 7),
                         ::testing::PrintToStringParamName());

TEST_P(FailedPacking, ReachesAllThatDependOnTheValue) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    for (int bad = 0; bad < world.size(); ++bad) {
      const Picky mine{world.rank() == bad ? -1 : 1};
      const std::function<Future<Picky>()> allreduce = [&] { return world.allreduce<&add_picky>(mine); };
      const std::string merged = co_await failure_of_call(allreduce);
      EXPECT_EQ(merged, kDoesNotPack);
      const std::function<Future<std::vector<Picky>>()> allgather = [&] { return world.allgather(mine); };
      const std::string gathered = co_await failure_of_call(allgather);
      EXPECT_EQ(gathered, kDoesNotPack);
      const std::function<Future<Picky>()> broadcast = [&] { return world.broadcast(mine, bad); };
      const std::string spread = co_await failure_of_call(broadcast);
      EXPECT_EQ(spread, kDoesNotPack);
      const int root = world.size() - 1;
      const std::function<Future<std::optional<Picky>>()> reduce = [&] {
        return world.reduce<&add_picky>(mine, root);
      };
      const std::string at_root = co_await failure_of_call(reduce);
      if (world.rank() == root || world.rank() == bad) {
        EXPECT_EQ(at_root, kDoesNotPack);
      }
      const Picky sum = co_await world.allreduce<&add_picky>(Picky{1});
      EXPECT_EQ(sum.value, world.size());
    }
  }),
            "");
}

// The values of the other ranks are not packed.
TEST_P(FailedPacking, OfAValueThatABroadcastDoesNotUse) {
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const Picky mine{world.rank() == 0 ? 3 : -1};
    const Picky spread = co_await world.broadcast(mine, 0);
    EXPECT_EQ(spread.value, 3);
  }),
            "");
}

// A rank gives more elements than any memory holds.
TEST_P(FailedPacking, OfARankWithoutMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends a program that asks for so much";
#endif
  TeamJob job(GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<unsigned char> values(std::size_t{2} << 20, 1);  // so many do not go through the engine
    for (int bad = 0; bad < world.size(); ++bad) {
      const std::size_t count = world.rank() == bad ? std::size_t{PTRDIFF_MAX} + 1 : values.size();
      const std::span<unsigned char> given(values.data(), count);
      const std::string failure = co_await failure_of(world.allreduce_in_place(given, Reducer::kSum));
      EXPECT_EQ(failure.rfind("std::bad_a", 0), 0U) << failure;  // bad_alloc or bad_array_new_length
      const int sum = co_await world.allreduce(1, Reducer::kSum);
      EXPECT_EQ(sum, world.size());
    }
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
