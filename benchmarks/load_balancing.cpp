// Load balancing at sync points: what a step gains and costs, and what measuring adds to an entry method.
//
//   weft run -n 2 load_balancing ramp        16 elements a PE, whose work rises from 100 us to 1 ms along the array
//   weft run -n 2 load_balancing set_ramp    the same, and the elements set their loads: a shared processor disturbs nothing
//   weft run -n 1 load_balancing metering    a local entry method with 8 bytes, of a class that is measured and of one that is not
//
// ramp: rounds of 10 iterations, each ended by a step. The clock of PE 0 runs from the start of a round to its last iteration, and
// on to the end of the step. The work is wall time, so that a shared processor changes the figures little; with ramp, loads must be
// wall time too: WEFT_LB_CLOCK=wall. The imbalance
// is computed from the work of the elements on each PE.
//
// metering: two elements of one PE call each other; both classes take turns, the medians of 9 runs are printed.
#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace {

using namespace weft::benchmarks;

constexpr int kElementsPerPe = 16;
constexpr int kIterations = 10;
constexpr int kRounds = 4;
constexpr double kUnitS = 100e-6;

double work_of(std::uint64_t index, std::uint64_t count) {
  return kUnitS * (1 + 9.0 * static_cast<double>(index) / static_cast<double>(count - 1));
}

struct Block : weft::Chare<Block> {
  void pup(weft::Pup& p) { p | state | iteration | iterated | resumed; }

  void round(bool sets_load, weft::Future<int> when_iterated, weft::Future<int> when_resumed) {
    if (sets_load) set_load_s(kIterations * work_of(linear_index(), collection().shape().size()));
    iterated = std::move(when_iterated);
    resumed = std::move(when_resumed);
    iteration = 0;
    state.resize(1000);
    iterate();
  }
  void iterate() {
    const Stopwatch watch;
    while (watch.elapsed_s() < work_of(linear_index(), collection().shape().size())) {
    }
    if (++iteration < kIterations) {
      proxy()[linear_index()].send<&Block::iterate>();
    } else {
      contribute(1, weft::Reducer::kSum, weft::target_of(iterated));
    }
  }
  void sync() { at_sync(); }
  void resume_from_sync() override { contribute(1, weft::Reducer::kSum, weft::target_of(resumed)); }
  int where_now() { return pe(); }

  std::vector<double> state;
  int iteration = 0;
  weft::Future<int> iterated;
  weft::Future<int> resumed;
};

weft::Task<double> imbalance(weft::Runtime& runtime, weft::Array<Block> blocks) {
  std::vector<double> times(static_cast<std::size_t>(runtime.num_pes()));
  const std::vector<int> pes = co_await blocks.call<&Block::where_now>();
  double sum = 0;
  for (std::size_t i = 0; i < pes.size(); ++i) {
    times[static_cast<std::size_t>(pes[i])] += work_of(i, pes.size());
    sum += work_of(i, pes.size());
  }
  co_return *std::ranges::max_element(times) / (sum / static_cast<double>(times.size())) - 1;
}

weft::Task<> measure_ramp(weft::Runtime& runtime, bool sets_loads) {
  auto blocks = weft::Array<Block>::create(runtime, {kElementsPerPe * runtime.num_pes()});
  double steps_s = 0;
  const Stopwatch whole;
  for (int round = 0; round < kRounds; ++round) {
    report("imbalance", 0, co_await imbalance(runtime, blocks));
    weft::Future<int> iterated(runtime);
    weft::Future<int> resumed(runtime);
    const Stopwatch watch;
    blocks.send<&Block::round>(sets_loads, iterated, resumed);
    co_await iterated;
    const double round_s = watch.elapsed_s();
    report("iteration_ms", 0, 1e3 * round_s / kIterations);
    blocks.send<&Block::sync>();
    co_await resumed;
    const double step_s = watch.elapsed_s() - round_s;
    report("step_us", 0, 1e6 * step_s);
    steps_s += step_s;
  }
  report("imbalance", 0, co_await imbalance(runtime, blocks));
  report("steps_percent_of_time", 0, 100 * steps_s / whole.elapsed_s());
}

// Calls its partner until `left` is 0.
template <class T>
struct Peer : weft::Chare<T> {
  void begin(std::int64_t count, weft::Future<double> when_done) {
    done = std::move(when_done);
    watch = Stopwatch();
    token(count);
  }
  void token(std::int64_t left) {
    if (left == 0) return done.set(watch.elapsed_s());
    this->proxy()[1 - static_cast<int>(this->linear_index())].template send<&T::token>(left - 1);
  }
  Stopwatch watch;
  weft::Future<double> done;
};
struct Measured : Peer<Measured> {
  void resume_from_sync() override {}
};
struct Unmeasured : Peer<Unmeasured> {};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

weft::Task<> measure_metering(weft::Runtime& runtime) {
  if (runtime.num_pes() != 1) die("metering needs 1 PE: weft run -n 1 load_balancing metering");
  constexpr std::int64_t kCalls = 400'000;  // even: the first element gets the last call
  constexpr int kRuns = 9;
  auto measured = weft::Array<Measured>::create(runtime, {2});
  auto unmeasured = weft::Array<Unmeasured>::create(runtime, {2});
  std::vector<double> measured_ns;
  std::vector<double> unmeasured_ns;
  for (int run = 0; run < kRuns; ++run) {
    weft::Future<double> first(runtime);
    weft::Future<double> second(runtime);
    measured[0].send<&Measured::begin>(kCalls, first);
    measured_ns.push_back(1e9 * co_await first / kCalls);
    unmeasured[0].send<&Unmeasured::begin>(kCalls, second);
    unmeasured_ns.push_back(1e9 * co_await second / kCalls);
  }
  report("unmeasured_ns", 8, median(unmeasured_ns));
  report("measured_ns", 8, median(measured_ns));
  report("ratio", 8, median(measured_ns) / median(unmeasured_ns));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (mode != "ramp" && mode != "set_ramp" && mode != "metering") {
    die("usage: load_balancing ramp|set_ramp|metering");
  }
  return weft::run(argc, argv, [mode](weft::Runtime& runtime) -> weft::Task<> {
    if (mode == "metering") {
      co_await measure_metering(runtime);
    } else {
      co_await measure_ramp(runtime, mode == "set_ramp");
    }
  });
}
