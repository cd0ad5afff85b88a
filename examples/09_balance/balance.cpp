// Blocks of unequal work, which load balancing moves at a sync point after every fifth iteration.
//
//   weft run -n 2 --lb-verbose build/release/examples/balance
//   weft run -n 2 --lb-verbose --lb round_robin build/release/examples/balance
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "weft/weft.h"

constexpr int kNumBlocks = 32;
constexpr int kIterationsPerStep = 5;
constexpr int kNumSteps = 3;
constexpr double kUnitS = 20e-6;

struct Block : weft::Chare<Block> {
  Block() = default;

  // A block that moves travels with these.
  void pup(weft::Pup& p) { p | values_ | num_iterations_ | finished_; }

  void start(weft::Future<int> finished) {
    finished_ = std::move(finished);
    values_.assign(1000, static_cast<double>(linear_index()));
    iterate();
  }

  // One iteration. Blocks iterate on their own here; real ones would exchange halos.
  void iterate() {
    compute(kUnitS * (1 + 9.0 * static_cast<double>(linear_index()) / (kNumBlocks - 1)));
    if (++num_iterations_ % kIterationsPerStep == 0) {
      at_sync();
    } else {
      proxy()[linear_index()].send<&Block::iterate>();
    }
  }

  // All blocks have reached the sync point, and those that had to move have moved.
  void resume_from_sync() override {
    if (num_iterations_ < kNumSteps * kIterationsPerStep) {
      proxy()[linear_index()].send<&Block::iterate>();
    } else {
      contribute(1, weft::Reducer::kSum, weft::target_of(finished_));
    }
  }

  int where_now() { return pe(); }
  bool is_whole() {
    for (double value : values_) {
      if (value != static_cast<double>(linear_index())) return false;
    }
    return num_iterations_ == kNumSteps * kIterationsPerStep;
  }

 private:
  static void compute(double time_s) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(time_s);
    while (std::chrono::steady_clock::now() < end) {
    }
  }

  std::vector<double> values_;
  int num_iterations_ = 0;
  weft::Future<int> finished_;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto blocks = weft::Array<Block>::create(runtime, kNumBlocks);
  weft::Future<int> finished(runtime);
  blocks.send<&Block::start>(finished);
  std::printf("%d blocks have finished\n", co_await finished);

  int num_whole = 0;
  for (bool whole : co_await blocks.call<&Block::is_whole>()) num_whole += whole ? 1 : 0;
  std::printf("%d of them are whole\n", num_whole);

  std::vector<int> blocks_of_pe(static_cast<std::size_t>(runtime.num_pes()));
  for (int pe : co_await blocks.call<&Block::where_now>()) ++blocks_of_pe[static_cast<std::size_t>(pe)];
  bool is_used = true;
  for (int count : blocks_of_pe) is_used = is_used && count > 0;
  std::printf("every PE has blocks: %s\n", is_used ? "yes" : "no");
}

// A strategy of this program: deals the blocks out to the PEs and ignores their loads.
weft::balance::Placement round_robin(const weft::balance::Snapshot& snapshot) {
  weft::balance::Placement pes = weft::balance::present_placement(snapshot);
  for (std::size_t i = 0; i < pes.size(); ++i) {
    if (snapshot.objects[i].can_move) pes[i] = static_cast<int>(i) % snapshot.num_pes;
  }
  return pes;
}

int main(int argc, char** argv) {
  weft::balance::register_strategy("round_robin", &round_robin);
  return weft::run(argc, argv, start);
}
