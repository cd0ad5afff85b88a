// Workers of unequal speed, each on its own: load balancing moves them while they work, without sync points.
//
//   weft run -n 2 --lb-period 0.05 --lb-verbose build/release/examples/periodic
#include <chrono>
#include <cstdio>
#include <utility>

#include "weft/weft.h"

constexpr int kNumWorkers = 16;
constexpr int kNumItems = 100;
constexpr double kUnitS = 50e-6;

struct Worker : weft::Chare<Worker> {
  // It may move between any two of its calls.
  static constexpr bool kBalancePeriodically = true;
  void pup(weft::Pup& p) { p | num_items_ | num_moves_ | finished_; }

  void start(weft::Future<int> finished) {
    finished_ = std::move(finished);
    work();
  }
  void work() {
    compute(kUnitS * (1 + 9.0 * static_cast<double>(linear_index()) / (kNumWorkers - 1)));
    if (++num_items_ < kNumItems) {
      proxy()[linear_index()].send<&Worker::work>();
    } else {
      contribute(num_items_, weft::Reducer::kSum, weft::target_of(finished_));
    }
  }
  void migrated() override { ++num_moves_; }
  int times_moved() { return num_moves_; }

 private:
  static void compute(double time_s) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(time_s);
    while (std::chrono::steady_clock::now() < end) {
    }
  }

  int num_items_ = 0;
  int num_moves_ = 0;
  weft::Future<int> finished_;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto workers = weft::Array<Worker>::create(runtime, kNumWorkers);
  weft::Future<int> finished(runtime);
  workers.send<&Worker::start>(finished);
  std::printf("%d workers have done %d items\n", kNumWorkers, co_await finished);
  int num_moved = 0;
  for (int moves : co_await workers.call<&Worker::times_moved>()) num_moved += moves > 0 ? 1 : 0;
  std::printf("workers that have moved: %d\n", num_moved);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
