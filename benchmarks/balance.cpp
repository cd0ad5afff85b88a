// The time that a load-balancing strategy takes to decide, and how good the decision is. No runtime, one thread.
//
//   balance [--runs N] [--strategy NAME] [--objects N] [--pes N] [--tolerance T]
//
// Without options: every strategy on 10,000 and 100,000 objects and on 2, 64 and 1024 PEs, the median of 15 runs. The
// timed part is place() alone, on a new strategy each time; the placement's destruction is not timed. `check` is the time of
// the check of a snapshot.
//
// The objects are a square grid. Each one exchanges 1000 bytes with its four neighbours. The PEs have square blocks of the
// grid, as near to square as possible. Loads rise from 1 to 10 ms along one side of the grid, times a random factor of 0.8 to
// 1.2 (fixed seed). An object has 4096 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "balance/strategy_table.h"
#include "balance/summary.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

struct Options {
  int runs = 15;
  std::string strategy;
  std::vector<int> objects{10'000, 100'000};
  std::vector<int> pes{2, 64, 1024};
  balance::StrategyOptions of_strategy;
};

template <class Number>
Number number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0)) {
    die(fmt::format("'{}' is not a number", text));
  }
  return number;
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) die(fmt::format("{} needs a value", name));
    const std::string_view value = argv[i + 1];
    if (name == "--runs") {
      options.runs = std::max(1, number_of<int>(value));
    } else if (name == "--strategy") {
      options.strategy = value;
    } else if (name == "--objects") {
      options.objects = {std::max(1, number_of<int>(value))};
    } else if (name == "--pes") {
      options.pes = {std::max(1, number_of<int>(value))};
    } else if (name == "--tolerance") {
      options.of_strategy.tolerance = number_of<double>(value);
    } else {
      die(fmt::format("'{}' is no option: --runs, --strategy, --objects, --pes or --tolerance", name));
    }
  }
  return options;
}

// The divisor of `number` that is nearest to its square root from below.
int short_side(int number) {
  int side = static_cast<int>(std::sqrt(static_cast<double>(number)));
  while (number % side != 0) --side;
  return side;
}

constexpr std::uint64_t kSeed = 1;  // The same loads in every run.

// At most `num_objects`: a whole square.
balance::Snapshot grid(int num_objects, int num_pes, std::uint64_t seed) {
  const int side = static_cast<int>(std::sqrt(static_cast<double>(num_objects)));
  const int pe_rows = short_side(num_pes);
  const int pe_columns = num_pes / pe_rows;
  std::mt19937_64 random(seed);
  balance::Snapshot snapshot;
  snapshot.num_pes = num_pes;
  snapshot.background_load_s.assign(static_cast<std::size_t>(num_pes), 0.0);
  for (int i = 0; i < side * side; ++i) {
    const int row = i / side;
    const int column = i % side;
    const int pe = row * pe_rows / side * pe_columns + column * pe_columns / side;
    const double ramp = 1 + 9.0 * column / std::max(1, side - 1);
    const double factor = 0.8 + 0.4 * static_cast<double>(random() >> 11) * 0x1p-53;
    const auto object = static_cast<std::uint32_t>(i);
    snapshot.objects.push_back({0, object, pe, 1e-3 * ramp * factor, 4096, true});
    if (column > 0) snapshot.edges.push_back({object - 1, object, 1, 1000});
    if (row > 0) snapshot.edges.push_back({object - static_cast<std::uint32_t>(side), object, 1, 1000});
  }
  return snapshot;
}

struct Times {
  double median_ms;
  double min_ms;
  double max_ms;
};

template <class Function>
Times times_of(int runs, Function&& function) {
  std::vector<double> times_ms;
  function();  // warm-up
  for (int run = 0; run < runs; ++run) times_ms.push_back(function());
  std::sort(times_ms.begin(), times_ms.end());
  return {times_ms[times_ms.size() / 2], times_ms.front(), times_ms.back()};
}

std::string head_of(std::string_view strategy, const balance::Snapshot& snapshot, int runs,
                    const Times& times) {
  return fmt::format(
      R"({{"strategy": "{}", "objects": {}, "pes": {}, "edges": {}, "metric": "time_ms", "median": {:.4f}, "min": {:.4f}, )"
      R"("max": {:.4f}, "runs": {})",
      strategy, snapshot.objects.size(), snapshot.num_pes, snapshot.edges.size(), times.median_ms,
      times.min_ms, times.max_ms, runs);
}

void measure_check(const balance::Snapshot& snapshot, int runs) {
  const Times times = times_of(runs, [&snapshot] {
    Stopwatch stopwatch;
    if (!balance::check(snapshot).ok()) die("the benchmark's own snapshot is not valid");
    return stopwatch.elapsed_s() * 1e3;
  });
  fmt::print("{}}}\n", head_of("check", snapshot, runs, times));
}

void measure(std::string_view name, const balance::Snapshot& snapshot, const Options& options) {
  balance::Placement placement;
  const Times times = times_of(options.runs, [&] {
    auto strategy = balance::make_strategy(name, options.of_strategy);
    if (!strategy.ok()) die(strategy.status().message());
    Stopwatch stopwatch;
    balance::Placement decided = (*strategy)->place(snapshot);
    const double time_ms = stopwatch.elapsed_s() * 1e3;
    placement = std::move(decided);
    return time_ms;
  });
  const balance::Summary summary = balance::summarize(snapshot, placement);
  fmt::print(
      R"({}, "imbalance_before": {:.4f}, "imbalance_after": {:.4f}, "moves": {}, "external_bytes_before": {}, )"
      R"("external_bytes_after": {}}})"
      "\n",
      head_of(name, snapshot, options.runs, times), summary.imbalance_before, summary.imbalance_after,
      summary.moves, summary.external_bytes_before, summary.external_bytes_after);
  std::fflush(stdout);
}

void run(const Options& options) {
  for (const int objects : options.objects) {
    for (const int pes : options.pes) {
      const balance::Snapshot snapshot = grid(objects, pes, kSeed);
      if (options.strategy.empty()) measure_check(snapshot, options.runs);
      for (const balance::StrategyEntry& entry : balance::strategy_table()) {
        if (options.strategy.empty() || options.strategy == entry.name)
          measure(entry.name, snapshot, options);
      }
    }
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  pin(0);
  run(options_of(argc, argv));
  return 0;
}
