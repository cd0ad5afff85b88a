// Many steps with random calls, broadcasts and moves between the sync points.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

// --- Random traffic

// Goes from sync point to sync point by itself, and counts the calls that it gets.
struct Nomad : Chare<Nomad> {
  Nomad() { ++alive; }
  ~Nomad() override { --alive; }
  void pup(Pup& p) { p | cargo | heard | steps | last_step | random_state | over; }

  void start(int num_steps, std::uint64_t seed, int cargo_size, Future<int> target) {
    last_step = num_steps;
    random_state = seed * 2862933555777941757 + linear_index() * 3037000493 + 1;
    cargo.assign(static_cast<std::size_t>(cargo_size), linear_index());
    over = std::move(target);
    go_on();
  }
  void go_on() {
    set_load_s(static_cast<double>(next() % 1000));
    switch (next() % 4) {
      case 0:
        migrate(static_cast<int>(next() % static_cast<std::uint64_t>(num_pes())));
        at_sync();
        break;
      case 1:
        migrate(static_cast<int>(next() % static_cast<std::uint64_t>(num_pes())));
        proxy()[linear_index()].send<&Nomad::sync>();
        break;
      default:
        at_sync();
    }
  }
  void sync() { at_sync(); }
  void resume_from_sync() override {
    if (++steps == last_step) return contribute(steps, Reducer::kSum, target_of(over));
    if (next() % 2 == 0) {
      proxy()[linear_index()].send<&Nomad::go_on>();
    } else {
      go_on();
    }
  }
  void hear(int source, int number) { ++heard[{source, number}]; }
  std::string log() {
    std::string text;
    if (std::ranges::count(cargo, linear_index()) != std::ssize(cargo)) text += "damaged cargo;";
    if (steps != last_step) text += std::to_string(steps) + " steps;";
    for (const auto& [id, count] : heard) {
      if (count != 1) text += "heard " + std::to_string(count) + " times;";
    }
    return text + std::to_string(heard.size());
  }
  std::uint64_t next() {
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return random_state >> 33;
  }

  std::vector<std::uint64_t> cargo;
  std::map<std::pair<int, int>, int> heard;
  int steps = 0;
  int last_step = 0;
  std::uint64_t random_state = 0;
  Future<int> over;
};

struct Caller : Chare<Caller> {
  Task<int> run(Array<Nomad> nomads, unsigned seed, int count) {
    std::mt19937 random(seed + static_cast<unsigned>(pe()));
    const auto elements = static_cast<unsigned>(nomads.shape().size());
    int broadcasts = 0;
    for (int number = 0; number < count; ++number) {
      if (random() % 16 == 0) {
        nomads.send<&Nomad::hear>(pe(), -1 - broadcasts++);
      } else {
        nomads[static_cast<int>(random() % elements)].send<&Nomad::hear>(pe(), number);
      }
      if (random() % 4 == 0) co_await yield_now(runtime());
    }
    co_return broadcasts;
  }
};

void run_nomads(const char* machine, const char* strategy, int num_pes, int elements, int steps,
                int cargo_size, unsigned seed) {
  SCOPED_TRACE(std::string(machine) + " " + strategy + " " + std::to_string(num_pes) + " PEs, " +
               std::to_string(elements) + " elements, seed " + std::to_string(seed));
  alive = 0;
  InProcessJob job(num_pes, machine);
  use_strategy(job, strategy);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto nomads = Array<Nomad>::create(runtime, {elements});
    auto callers = Group<Caller>::create(runtime);
    Future<int> over(runtime);
    nomads.send<&Nomad::start>(steps, std::uint64_t{seed}, cargo_size, over);
    constexpr int kCalls = 300;
    auto calling = callers.call<&Caller::run>(nomads, seed, kCalls);
    EXPECT_EQ(co_await over, steps * elements);
    int broadcasts = 0;
    for (int of_pe : co_await calling) broadcasts += of_pe;
    co_await runtime.quiescence();
    int heard = 0;
    for (const std::string& log : co_await nomads.call<&Nomad::log>()) {
      EXPECT_EQ(log.find(';'), std::string::npos) << log;
      heard += std::stoi(log);
    }
    EXPECT_EQ(heard, kCalls * num_pes - broadcasts + broadcasts * elements);
    EXPECT_EQ(alive, elements);
    co_await nomads.destroy();
    EXPECT_EQ(alive, 0);
  }),
            "");
}

TEST(SyncTraffic, RunsManyStepsUnderRandomTraffic) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  unsigned run = 0;
  for (const char* strategy : {"random", "rotate", "greedy_refine", "diffusion"}) {
    for (int num_pes : {1, 2, 3, 4, 6}) {
      run_nomads("loopback", strategy, num_pes, 1 + static_cast<int>(run * 5 % 13), 40, 4, seed + run);
      ++run;
    }
  }
}

TEST(SyncTraffic, RunsManyStepsThroughUcx) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (int cargo_size : {0, 20'000}) run_nomads("ucx", "random", 4, 9, 40, cargo_size, seed);
}

}  // namespace
}  // namespace weft::chare::sync_testing
