// Calls to sections and reductions over them while the members move at random. Seeds are printed.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Bee : Chare<Bee> {
  explicit Bee(int cargo_size) : cargo(static_cast<std::size_t>(cargo_size)) {}
  explicit Bee(Moved) {}
  void pup(Pup& p) { p | cargo | heard; }

  void hear(int sender, int number) { ++heard[{sender, number}]; }
  void hear_much(int sender, int number, const std::vector<double>& values) {
    if (values.size() == 5000 && values.back() == number) ++heard[{sender, number}];
  }
  // An element in whose memory a call lands stays.
  void go(int to_pe) {
    if (num_suspended() == 0) migrate(to_pe);
  }
  std::uint64_t where() { return linear_index(); }
  // Moves between its contributions too, because the members' calls come in any order.
  void give(Section<Bee> section, Future<std::vector<std::uint64_t>> all, int to_pe) {
    contribute(linear_index(), Reducer::kGather, target_of(all), section);
    if (to_pe >= 0) go(to_pe);
  }
  std::map<std::pair<int, int>, int> log() { return heard; }

  std::vector<std::uint64_t> cargo;
  std::map<std::pair<int, int>, int> heard;
};

struct Keeper : Chare<Keeper> {
  // Returns the members to which each numbered call went.
  Task<std::vector<std::vector<std::uint64_t>>> run(Array<Bee> bees, unsigned seed, int num_steps) {
    std::mt19937 random(seed + static_cast<unsigned>(pe()) * 7919);
    const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const int num_bees = static_cast<int>(bees.shape().size());
    std::vector<std::vector<std::uint64_t>> sent;
    const auto draw = [&] {
      if (below(3) == 0) {
        const int first = below(num_bees);
        return bees.slice({Range::between(first, num_bees, 1 + below(3))});
      }
      std::vector<Index> chosen;
      for (int i = num_bees - 1; i >= 0; --i) {
        if (below(2) == 0) chosen.emplace_back(i);
      }
      return bees.section(chosen);
    };
    const auto list = [](const Section<Bee>& section) {
      std::vector<std::uint64_t> all;
      for (std::uint64_t i = 0; i < section.size(); ++i) all.push_back(section[i].linear_index());
      return all;
    };
    for (int step = 0; step < num_steps; ++step) {
      const auto section = draw();
      switch (below(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
          bees[below(num_bees)].send<&Bee::go>(below(num_pes()));
          break;
        case 4:
          if (below(4) != 0) break;
          EXPECT_EQ(co_await section.call<&Bee::where>(), list(section));
          break;
        case 5:
          co_await yield_now(runtime());
          break;
        case 6: {
          const auto number = static_cast<int>(sent.size());
          section.send<&Bee::hear_much>(pe(), number, std::vector<double>(5000, number));
          sent.push_back(list(section));
          break;
        }
        default: {
          const auto number = static_cast<int>(sent.size());
          section.send<&Bee::hear>(pe(), number);
          sent.push_back(list(section));
        }
      }
    }
    co_return sent;
  }

  // Reductions over sections of elements that no other keeper uses: equal sections of two keepers would be the same.
  Task<int> reduce(Array<Bee> bees, unsigned seed, int num_rounds) {
    std::mt19937 random(seed + static_cast<unsigned>(pe()) * 104'729);
    const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<Index> own;
    for (int i = static_cast<int>(bees.shape().size()) - 1; i >= 0; --i) {
      if (i % num_pes() == pe()) own.emplace_back(i);
    }
    const auto all = bees.section(own);
    std::vector<std::pair<Section<Bee>, Future<std::vector<std::uint64_t>>>> begun;
    for (int round = 0; round < num_rounds; ++round) {
      const auto parts = all.split(1 + below(3));
      for (const auto& part : parts) {
        if (part.size() == 0) continue;
        begun.emplace_back(part, Future<std::vector<std::uint64_t>>(runtime()));
        for (std::uint64_t i = 0; i < part.size(); ++i)
          part[i].template send<&Bee::give>(part, begun.back().second, below(3) == 0 ? below(num_pes()) : -1);
      }
      if (below(2) == 0) co_await yield_now(runtime());
      // Calls of two rounds may overtake one another, and would mix the futures of equal sections.
      for (auto& [section, result] : begun) {
        const std::vector<std::uint64_t> got = co_await result;
        bool is_equal = got.size() == section.size();
        for (std::uint64_t i = 0; is_equal && i < got.size(); ++i)
          is_equal = got[i] == section[i].linear_index();
        EXPECT_TRUE(is_equal);
      }
      begun.clear();
    }
    co_return num_rounds;
  }
};

void run_traffic(const char* machine, int num_pes, int num_bees, int num_steps, int cargo_size,
                 unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(num_pes) + " PEs");
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const auto bees = Array<Bee>::create(runtime, {num_bees}, cargo_size);
    const auto keepers = Group<Keeper>::create(runtime);
    auto reduced = keepers.call<&Keeper::reduce>(bees, seed, num_steps / 20);
    const auto sent = co_await keepers.call<&Keeper::run>(bees, seed, num_steps);
    co_await reduced;
    co_await runtime.quiescence();
    std::vector<std::map<std::pair<int, int>, int>> expected(static_cast<std::size_t>(num_bees));
    for (std::size_t sender = 0; sender < sent.size(); ++sender) {
      for (std::size_t number = 0; number < sent[sender].size(); ++number) {
        for (const std::uint64_t member : sent[sender][number])
          expected[member][{static_cast<int>(sender), static_cast<int>(number)}] = 1;
      }
    }
    EXPECT_EQ(co_await bees.call<&Bee::log>(), expected);
  }),
            "");
}

TEST(SectionTraffic, EachMemberGetsEachCallOnceWhileMembersMove) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (unsigned run = 0; run < 24; ++run) {
    run_traffic("loopback", 1 + static_cast<int>(run % 7), 1 + static_cast<int>(run * 5 % 37), 400,
                run % 4 == 3 ? 8000 : 4, seed + run);
  }
}

TEST(SectionTraffic, EachMemberGetsEachCallOnceThroughUcx) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (const int cargo_size : {0, 20'000}) run_traffic("ucx", 4, 9, 500, cargo_size, seed);
}

}  // namespace
}  // namespace weft::chare
