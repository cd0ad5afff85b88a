// All-gather of teams: values of one size and of any, on both sides of the sizes at which it changes its way.
#include "models/pgas/team/gather_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/pgas/team/gathered_values.h"
#include "tests/support/pattern.h"
#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::Team;
using pgas::World;

// PEs, and the host of each one.
using GatherPlaces = std::pair<int, std::vector<int>>;
class Gathers : public ::testing::TestWithParam<GatherPlaces> {
 protected:
  static int size() { return GetParam().first; }
  struct Job : TeamJob {
    Job() : TeamJob(size(), "loopback", GetParam().second) {}
  };
};
INSTANTIATE_TEST_SUITE_P(OnOneHost, Gathers,
                         ::testing::Values(GatherPlaces{1, {}}, GatherPlaces{2, {}}, GatherPlaces{3, {}},
                                           GatherPlaces{4, {}}, GatherPlaces{5, {}}));
INSTANTIATE_TEST_SUITE_P(OnHosts, Gathers,
                         ::testing::Values(GatherPlaces{3, {0, 1, 2}}, GatherPlaces{4, {0, 0, 1, 1}},
                                           GatherPlaces{5, {0, 1, 0, 1, 0}}));

Task<> wait_some_turns(World& world, unsigned seed) {
  std::mt19937 random(seed * 31 + static_cast<unsigned>(world.rank()));
  for (unsigned turns = random() % 40; turns > 0; --turns) co_await runtime::yield_now(world.runtime());
}

// Text of that size which tells its rank and the places in it.
std::string text_of(int rank, std::size_t size_bytes) {
  constexpr std::size_t kRow = 1021, kLetters = 23;
  std::string text(size_bytes, '\0');
  for (std::size_t i = 0; i < std::min(size_bytes, kRow * kLetters); ++i)
    text[i] = static_cast<char>('a' + (static_cast<std::size_t>(rank) * 7 + i + i / kRow) % kLetters);
  test_support::repeat_bytes(text.data(), kRow * kLetters, size_bytes);
  return text;
}

using SizeOf = std::function<std::size_t(int)>;  // of a rank's text

Task<> check_texts(const Team& team, const SizeOf& size_of) {
  const std::vector<std::string> all = co_await team.allgather(text_of(team.rank(), size_of(team.rank())));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(team.size()));
  // Not EXPECT_EQ of texts, which would print them.
  for (int rank = 0; rank < team.size(); ++rank)
    EXPECT_TRUE(all[static_cast<std::size_t>(rank)] == text_of(rank, size_of(rank))) << rank;
}

// A text of 112 bytes is in its head with its length.
TEST_P(Gathers, TextsOfAllSizes) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    for (const std::size_t count :
         {0U, 1U, 8U, 64U, 65U, 112U, 113U, 1024U, 32U << 10, 65'529U, (1U << 20) + 3}) {
      co_await wait_some_turns(world, count);
      co_await check_texts(world, [count](int) { return count; });
    }
  }),
            "");
}

TEST_P(Gathers, TextsOfDifferentSizes) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const int last = world.size() - 1;
    const std::vector<SizeOf> all = {
        [](int rank) { return static_cast<std::size_t>(rank) * 20; },
        [](int rank) { return static_cast<std::size_t>(rank) * 1000; },
        [](int rank) { return static_cast<std::size_t>(rank) * 40'000; },
        [](int rank) { return rank == 0 ? std::size_t{100'000} : 0; },
        [last](int rank) { return rank == last ? (std::size_t{3} << 20) + 5 : 1; },
        [](int rank) { return (std::size_t{1} << 20) * static_cast<std::size_t>(rank + 1) - 8; },
    };
    for (unsigned round = 0; round < all.size(); ++round) {
      co_await wait_some_turns(world, round);
      co_await check_texts(world, all[round]);
    }
  }),
            "");
}

template <std::size_t kSize>
Task<> check_arrays(const Team& team) {
  std::array<unsigned char, kSize> mine;
  mine.fill(static_cast<unsigned char>(team.rank() + 1));
  const std::vector<std::array<unsigned char, kSize>> all = co_await team.allgather(mine);
  EXPECT_EQ(all.size(), static_cast<std::size_t>(team.size()));
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    EXPECT_TRUE(std::ranges::all_of(all[rank], [rank](unsigned char byte) { return byte == rank + 1; }))
        << rank;
}

struct EmptyValue {};

TEST_P(Gathers, ValuesOfOneSize) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    co_await check_arrays<1>(world);
    co_await check_arrays<8>(world);
    co_await wait_some_turns(world, 1);
    co_await check_arrays<64>(world);
    co_await check_arrays<65>(world);
    co_await check_arrays<1024>(world);
    co_await wait_some_turns(world, 2);
    co_await check_arrays<1025>(world);
    co_await check_arrays<std::size_t{32} << 10>(world);
    co_await check_arrays<std::size_t{64} << 10>(world);
    co_await check_arrays<(std::size_t{64} << 10) + 1>(world);
    const std::vector<bool> even = co_await world.allgather(world.rank() % 2 == 0);
    for (std::size_t rank = 0; rank < even.size(); ++rank) EXPECT_EQ(even[rank], rank % 2 == 0);
    const std::vector<EmptyValue> none = co_await world.allgather(EmptyValue());
    EXPECT_EQ(none.size(), static_cast<std::size_t>(world.size()));
  }),
            "");
}

// The ranks of a team have other PEs than those of the world.
TEST_P(Gathers, OfTeamsAfterASplit) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const Team team = co_await world.split(world.rank() % 2, -world.rank());
    for (const std::size_t count : {1U, 3000U, 200'000U}) {
      co_await check_texts(team, [count](int rank) { return count * static_cast<std::size_t>(rank + 1); });
      co_await check_arrays<100>(team);
    }
  }),
            "");
}

// Several are under way at a time; those of large texts take several calls of the engine each.
TEST_P(Gathers, MayOverlap) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<Future<std::vector<std::string>>> all;
    std::vector<Future<std::vector<int>>> numbers;
    const auto size_of = [](std::size_t i) { return i % 3 == 2 ? (std::size_t{2} << 20) + i : i * 40; };
    for (std::size_t i = 0; i < 9; ++i) {
      all.push_back(world.allgather(text_of(world.rank(), size_of(i))));
      numbers.push_back(world.allgather(world.rank() + static_cast<int>(i)));
      co_await wait_some_turns(world, static_cast<unsigned>(i));
    }
    for (std::size_t i = 9; i-- > 0;) {
      const std::vector<std::string> texts = co_await all[i];
      const std::vector<int> some = co_await numbers[i];
      for (int rank = 0; rank < world.size(); ++rank) {
        EXPECT_TRUE(texts[static_cast<std::size_t>(rank)] == text_of(rank, size_of(i)));
        EXPECT_EQ(some[static_cast<std::size_t>(rank)], rank + static_cast<int>(i));
      }
    }
  }),
            "");
}

struct PickyText {
  std::string text;
  void pup(Pup& p) {
    if (!p.is_unpacking() && text == "bad") throw std::domain_error("a bad text does not pack");
    p | text;
    if (p.is_unpacking() && text == "poison") throw std::domain_error("poison does not unpack");
  }
};

// `mine` may not pack: then the call throws.
Task<std::string> failure_of_gather(World& world, PickyText mine) {
  std::optional<Future<std::vector<PickyText>>> started;
  std::string failure;
  try {
    started.emplace(world.allgather(mine));
  } catch (const std::domain_error& error) {
    failure = error.what();
  }
  if (started) failure = co_await failure_of(*started);
  co_return failure;
}

TEST_P(Gathers, ARankThatFailsToPackGivesAllItsError) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    for (int bad = 0; bad < world.size(); ++bad) {
      for (const std::size_t count : {10U, 5000U, 3U << 20}) {
        PickyText mine;
        mine.text = world.rank() == bad ? "bad" : text_of(world.rank(), count);
        const std::string failure = co_await failure_of_gather(world, mine);
        EXPECT_EQ(failure, "a bad text does not pack");
        co_await check_texts(world, [count](int) { return count; });
      }
    }
  }),
            "");
}

TEST_P(Gathers, AValueThatDoesNotUnpackFailsTheFutures) {
  Job job;
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    PickyText mine;
    mine.text = world.rank() == 0 ? "poison" : "good";
    const std::string failure = co_await failure_of_gather(world, mine);
    EXPECT_EQ(failure, "poison does not unpack");
    co_await check_texts(world, [](int) { return std::size_t{5}; });
  }),
            "");
}

// Ready when the collective is over.
template <class T>
Future<> end_of(World& world, const Future<T>& future) {
  const Future<> done(world.runtime());
  future.then([done](const Future<T>&) { done.set(); });
  return done;
}

using StartGather = std::function<Future<>(World&)>;
// The first four are all-gathers.
const std::vector<StartGather> kGathersAndOthers = {
    [](World& world) { return end_of(world, world.allgather(1)); },
    [](World& world) { return end_of(world, world.allgather(1.0)); },
    [](World& world) { return end_of(world, world.allgather(std::string("text"))); },
    [](World& world) { return end_of(world, world.allgather(std::vector<int>(1000))); },
    [](World& world) { return end_of(world, world.allreduce(1, Reducer::kSum)); },
    [](World& world) { return end_of(world, world.allreduce(std::vector<int>(3), Reducer::kSum)); },
    [](World& world) { return end_of(world, world.broadcast(std::string("text"), 0)); },
};

TEST_P(Gathers, RanksThatDisagreeEndTheJob) {
  if (size() == 1) return;
  for (std::size_t i = 0; i < kGathersAndOthers.size(); ++i) {
    for (std::size_t k = 0; k < kGathersAndOthers.size(); ++k) {
      if (i == k || std::min(i, k) >= 4) continue;
      for (const int differing : {0, size() - 1}) {
        Job job;
        const std::string failure = job.run_on_all([&](World& world) -> Task<> {
          co_await wait_some_turns(world, static_cast<unsigned>(differing));
          const Future<> over = kGathersAndOthers[world.rank() == differing ? k : i](world);
          const Future<> barrier = world.barrier();
          co_await over;
          co_await barrier;
        });
        EXPECT_NE(failure.find("all ranks of a team call the same collectives in the same order"),
                  std::string::npos)
            << i << ", and rank " << differing << " " << k << ": " << failure;
      }
    }
  }
}

// The futures are dropped, and the job ends with calls under way.
TEST(Gather, MayBeUnderWayAtTheEnd) {
  TeamJob job(3);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    World& world = pgas::world_of(runtime);
    static_cast<void>(world.allgather(1));
    static_cast<void>(world.allgather(std::string(3 << 20, 'x')));
    const auto wait = [](World& late) -> Task<> {
      static_cast<void>(late.allgather(1));
      co_await late.allgather(std::string(5000, 'y'));
    };
    job.runtime(1).spawn(wait(job.world(1)), "a rank that waits");
    for (int i = 0; i < 10; ++i) co_await runtime::yield_now(runtime);
  }),
            "");
}

// Rank 1 claims that its value has so many bytes, in a head as start_gather() sends it: no rank has the memory.
TEST(Gather, ASizeThatNoMemoryHasFailsAtAllRanks) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends a program that asks for so much";
#endif
  for (const std::uint64_t size_bytes :
       {std::uint64_t{1} << 50, std::uint64_t{1} << 62, std::uint64_t{PTRDIFF_MAX} / 4, ~std::uint64_t{0},
        ~std::uint64_t{0} - 56}) {
    TeamJob job(2);
    std::string failure;
    EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
      collective::Group& group = *world.state()->group;
      const auto number = [&] {
        const auto type = pgas::CollectiveType::of(
            pgas::CollectiveKind::kAllGather, 0, Reducer::kGather,
            pgas::rpc_detail::type_number<std::string>(),
            pgas::CollectiveType::way_of(group.form(collective::Kind::kAllgather, 128)));
        return pgas::engine_number(world.state()->exchange.begin(type), type);
      };
      if (world.rank() == 0) {
        failure = co_await failure_of(world.allgather(std::string(1000, 'x')));
      } else {
        std::uint64_t heads[2][16] = {{size_bytes}, {}};
        collective::Call call{.kind = collective::Kind::kAllgather,
                              .number = number(),
                              .data = reinterpret_cast<std::byte*>(heads),
                              .block_bytes = 128};
        collective::Run run(group, call);
        run.start();
        co_await collective::Ended(run);
        EXPECT_EQ(heads[1][0], 1008U);
        call.number = number();
        call.form = group.gather_form(size_bytes);
        collective::Run values(group, call);
        values.fail();
        values.start();
        co_await collective::Ended(values);
      }
      const std::vector<int> next = co_await world.allgather(7);
      EXPECT_EQ(next, std::vector<int>(2, 7));
    }),
              "");
    EXPECT_EQ(failure.rfind("std::bad_a", 0), 0U) << failure;  // bad_alloc or bad_array_new_length
  }
}

}  // namespace
}  // namespace weft::testing
