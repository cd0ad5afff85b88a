// Ping-pong by entry methods between every pair of PEs in turn, while the other PEs idle. With more PEs than
// cores the idle ones must yield. Prints the slowest pair's median over several repetitions. No PE is pinned.
#include <algorithm>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/entry_peer.h"
#include "benchmarks/job_program.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr int kRepetitions = 5;

weft::Task<double> pair_median_s(weft::Runtime& runtime, weft::CollectionProxy<EntryPeer> peers, Step step,
                                 int first, int second) {
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    weft::Future<double> done(runtime);
    peers[first].send<&EntryPeer::begin>(static_cast<int>(Bench::kLatency), step, second, done);
    times.push_back(co_await done);
  }
  std::sort(times.begin(), times.end());
  co_return times[kRepetitions / 2];
}

weft::Task<> measure(weft::Runtime& runtime, const Arguments& arguments) {
  auto peers = weft::Group<EntryPeer>::create(runtime, /*pinned=*/false);
  for (Step step : arguments.steps) {
    // The harness assumes two processes with a core each; here a turn may cost a time slice of the kernel's
    // scheduler.
    step.iterations = std::max<std::int64_t>(step.iterations / 100, 100);
    step.warmup = std::max<std::int64_t>(step.iterations / 10, 10);
    double slowest_s = 0;
    for (int first = 0; first < runtime.num_pes(); ++first) {
      for (int second = first + 1; second < runtime.num_pes(); ++second) {
        slowest_s = std::max(slowest_s, co_await pair_median_s(runtime, peers, step, first, second));
      }
    }
    report(Bench::kLatency, step, slowest_s);
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv, weft::benchmarks::measure); }
