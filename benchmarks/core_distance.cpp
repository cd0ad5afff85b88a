// The time in ns that a cache line takes between the two cores that PEs 0 and 1 run on. It is the hardware's
// part of every small message. Virtual machines are moved among cores that are near or far from one another,
// a factor of four within a minute. weft bench compares only figures of one distance.
//
//   core_distance [PES]
//
// With PES it prints the time of each pair among the cores of so many PEs: 0 and 1, 0 and 2, ..., 1 and 2, ...
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
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
void answer(Line& line, int pe) {
  pin(pe);
  for (std::uint32_t turn = 1; turn < 2 * kRoundTrips * kBatches; turn += 2) {
    while (line.turn.load(std::memory_order_acquire) != turn) {
    }
    line.turn.store(turn + 1, std::memory_order_release);
  }
}

double best_batch_s(Line& line) {
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

// Both threads are new, because a thread that has been pinned knows only its one core.
void measure_pair(int first, int second) {
  Line line;
  std::thread answering([&line, second] { answer(line, second); });
  std::thread asking([&line, first] {
    pin(first);
    const double best_s = best_batch_s(line);
    report("core_distance_ns", 0, best_s / kRoundTrips / 2 * 1e9);
  });
  asking.join();
  answering.join();
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  const long num_pes = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2;
  if (num_pes < 2 || num_pes > static_cast<long>(std::thread::hardware_concurrency())) {
    weft::benchmarks::die("usage: core_distance [PES], from 2 to the number of cores");
  }
  for (int first = 0; first < num_pes; ++first) {
    for (int second = first + 1; second < num_pes; ++second) weft::benchmarks::measure_pair(first, second);
  }
  return 0;
}
