// Calls, broadcasts and reductions while elements move at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"
#include "tests/unit/chare/rover.h"

namespace weft::chare {
namespace {

TEST(Migration, ReductionsAreCompleteWhereverTheElementsAre) {
  for (int num_pes : {1, 2, 3, 4, 11}) {
    SCOPED_TRACE(num_pes);
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      constexpr int kElements = 22;
      auto rovers = Array<Rover>::create(runtime, {kElements}, 1);
      int all = 0;
      for (int i = 0; i < kElements; ++i) all += i;
      // All to one PE, and back, and everywhere; each element contributes before or behind its move.
      for (int round = 0; round < 40; ++round) {
        Future<int> sum(runtime);
        for (int i = 0; i < kElements; ++i) {
          const int to_pe = round % 4 == 0   ? round / 4 % num_pes
                            : round % 4 == 1 ? (i * 7 + round) % num_pes
                                             : (i + round) % num_pes;
          const bool first = (i + round) % 3 == 0;
          if (first) rovers[i].send<&Rover::give>(i, sum);
          rovers[i].send<&Rover::go>(to_pe);
          if (!first) rovers[i].send<&Rover::give>(i, sum);
        }
        EXPECT_EQ(co_await sum, all) << round;
        int parts = 0;
        for (int part : co_await rovers.call<&Rover::take_part>(1)) parts += part;
        EXPECT_EQ(parts, kElements * kElements) << round;
      }
    }),
              "");
  }
}

TEST(Migration, ResultsThatGoToAllElementsReachEachOnce) {
  for (int num_pes : {2, 4, 5}) {
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      auto rovers = Array<Rover>::create(runtime, {8}, 1);
      for (int round = 1; round <= 30; ++round) {
        rovers.send<&Rover::give_to_all>(round);
        for (int i = 0; i < 8; ++i) rovers[i].send<&Rover::go>((i + round) % num_pes);
      }
      co_await runtime.quiescence();
      for (const std::string& log : co_await rovers.call<&Rover::log>()) EXPECT_EQ(log, "0,30");
    }),
              "");
  }
}

// Each element makes its own way: it contributes and moves at random, always to the same reductions in the same order.
struct Listener : Chare<Listener> {
  void hear(int sum) { sums.push_back(sum); }
  std::vector<int> heard() { return sums; }
  std::vector<int> sums;
};
struct Voter : Chare<Voter> {
  explicit Voter(Array<Listener> listeners_in) : listeners(listeners_in) {}
  explicit Voter(Moved) {}
  void pup(Pup& p) { p | listeners | next | to_all | to_one; }
  void run(int total, unsigned seed) {
    if (next == total) return;
    std::mt19937 random(seed + static_cast<unsigned>(linear_index()) * 7919);
    if (random() % 2 == 0) {
      migrate(static_cast<int>(random() % static_cast<unsigned>(num_pes())));
    } else {
      const runtime::Target targets[] = {proxy().target<&Voter::hear_all>(),
                                         proxy()[1].target<&Voter::hear_one>(),
                                         listeners.target<&Listener::hear>()};
      contribute(next, Reducer::kSum, targets[static_cast<unsigned>(next) % 3]);
      ++next;
    }
    proxy()[linear_index()].send<&Voter::run>(total, random());
  }
  void hear_all(int sum) { to_all.push_back(sum); }
  void hear_one(int sum) { to_one.push_back(sum); }
  std::vector<int> heard_as_all() { return to_all; }
  std::vector<int> heard_as_one() { return to_one; }
  Array<Listener> listeners;
  int next = 0;
  std::vector<int> to_all;
  std::vector<int> to_one;
};

std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  return values;
}

TEST(Migration, ReductionsWithAnyTargetUnderRandomMoves) {
  constexpr int kElements = 24;
  constexpr int kReductions = 60;
  std::vector<int> expected[3];
  for (int i = 0; i < kReductions; ++i) expected[i % 3].push_back(i * kElements);
  for (int num_pes : {2, 3, 4, 8, 16}) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(::testing::Message() << num_pes << " PEs, seed " << seed);
      testing::InProcessJob job(num_pes);
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        auto listeners = Array<Listener>::create(runtime, {num_pes});
        auto voters = Array<Voter>::create(runtime, {kElements}, listeners);
        voters.send<&Voter::run>(kReductions, seed);
        co_await runtime.quiescence();
        for (const auto& heard : co_await voters.call<&Voter::heard_as_all>()) {
          EXPECT_EQ(sorted(heard), expected[0]);
        }
        EXPECT_EQ(sorted(co_await voters[1].call<&Voter::heard_as_one>()), expected[1]);
        for (const auto& heard : co_await listeners.call<&Listener::heard>()) {
          EXPECT_EQ(sorted(heard), expected[2]);
        }
      }),
                "");
    }
  }
}

// --- Random traffic

// On every PE: sends numbered calls, and moves elements, at random.
struct Traffic : Chare<Traffic> {
  Task<std::vector<int>> run(Array<Rover> rovers, unsigned seed, int steps) {
    std::mt19937 random(seed + static_cast<unsigned>(pe()) * 7919);
    const int elements = static_cast<int>(rovers.shape().size());
    std::vector<int> sent(static_cast<std::size_t>(elements));
    int broadcasts = 0;
    for (int step = 0; step < steps; ++step) {
      const int i = static_cast<int>(random() % static_cast<unsigned>(elements));
      switch (random() % 8) {
        case 0:
          rovers.send<&Rover::hear_all>(pe(), broadcasts++);
          break;
        case 1:
        case 2:
          rovers[i].send<&Rover::go>(static_cast<int>(random() % static_cast<unsigned>(num_pes())));
          break;
        case 3:
          // A gather whose broadcast meets elements that move.
          if (random() % 8 == 0) {
            const std::vector<int> where = co_await rovers.call<&Rover::where_now>();
            EXPECT_EQ(static_cast<int>(where.size()), elements);
          }
          break;
        case 4:
          co_await yield_now(runtime());
          break;
        default:
          rovers[i]
              .with_priority(static_cast<int>(random() % 3) - 1)
              .send<&Rover::hear>(pe(), sent[static_cast<std::size_t>(i)]++);
      }
    }
    sent.push_back(broadcasts);
    co_return sent;
  }
};

void run_traffic(const char* machine, int num_pes, int elements, int steps, int cargo_size, unsigned seed) {
  SCOPED_TRACE(base::Error(base::StatusCode::kInvalidArgument, "seed " + std::to_string(seed)).what());
  num_rovers = 0;
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto rovers = Array<Rover>::create(runtime, {elements}, cargo_size);
    auto traffic = Group<Traffic>::create(runtime);
    const auto sent = co_await traffic.call<&Traffic::run>(rovers, seed, steps);
    co_await runtime.quiescence();
    std::size_t broadcasts = 0;
    for (const auto& of_pe : sent) broadcasts += static_cast<std::size_t>(of_pe.back());
    const std::vector<std::string> logs = co_await rovers.call<&Rover::log>();
    for (int i = 0; i < elements; ++i) {
      std::size_t calls = 0;
      for (const auto& of_pe : sent) calls += static_cast<std::size_t>(of_pe[static_cast<std::size_t>(i)]);
      EXPECT_EQ(logs[static_cast<std::size_t>(i)], std::to_string(calls) + "," + std::to_string(broadcasts));
    }
    EXPECT_EQ(num_rovers, elements);
    co_await rovers.destroy();
    EXPECT_EQ(num_rovers, 0);
  }),
            "");
}

TEST(Migration, LosesAndDoublesNoCallUnderRandomTraffic) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (unsigned run = 0; run < 20; ++run) {
    run_traffic("loopback", 2 + static_cast<int>(run % 6), 1 + static_cast<int>(run * 3 % 17), 800, 4,
                seed + run);
  }
}

TEST(Migration, LosesAndDoublesNoCallThroughUcx) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  // Small and large states: a large one is overtaken by the messages that follow it.
  for (int cargo_size : {0, 20'000}) run_traffic("ucx", 4, 9, 1000, cargo_size, seed);
}

}  // namespace
}  // namespace weft::chare
