// The time in ns that a cache line takes between the two cores that PEs 0 and 1 run on. It is the hardware's
// part of every small message. Virtual machines are moved among cores that are near or far from one another,
// a factor of four within a minute. weft bench compares only figures of one distance.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr int kBatches = 20;
constexpr std::uint32_t kRoundTrips = 2000;

struct alignas(128) Line {
  std::atomic<std::uint32_t> turn{0};
};

// Answers every odd turn.
void answer(Line& line) {
  pin(1);
  for (std::uint32_t turn = 1; turn < 2 * kRoundTrips * kBatches; turn += 2) {
    while (line.turn.load(std::memory_order_acquire) != turn) {
    }
    line.turn.store(turn + 1, std::memory_order_release);
  }
}

double best_batch_s(Line& line) {
  pin(0);
  double best = std::numeric_limits<double>::max();
  std::uint32_t turn = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    Stopwatch stopwatch;
    for (std::uint32_t i = 0; i < kRoundTrips; ++i) {
      line.turn.store(++turn, std::memory_order_release);
      ++turn;
      while (line.turn.load(std::memory_order_acquire) != turn) {
      }
    }
    best = std::min(best, stopwatch.elapsed_s());
  }
  return best;
}

}  // namespace
}  // namespace weft::benchmarks

int main() {
  using namespace weft::benchmarks;
  Line line;
  std::thread answering([&line] { answer(line); });
  double best_s = best_batch_s(line);
  answering.join();
  report("core_distance_ns", 0, best_s / kRoundTrips / 2 * 1e9);
  return 0;
}
