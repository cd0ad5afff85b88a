// A histogram whose bins lie on all PEs: millions of values per second, of all PEs together.
//
//   histogram [--way single|aggregated] [--values N] [--chares N] [--bins N] [--runs N]
//
// Each PE draws random values and calls the chare that has the bin of a value, which counts it. The calls travel one by one or aggregated
// in bundles. The clock of PE 0 runs from the first call until no message is under way. The best run counts. Then each count is compared
// with that of a histogram of the same values, which each PE has made by itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "benchmarks/random_places.h"

namespace weft::benchmarks {
namespace {

constexpr const char* kUsage =
    "histogram [--way single|aggregated] [--values N] [--chares N] [--bins N] [--runs N]";

struct Options {
  bool is_aggregated = true;
  std::uint64_t values = 1'000'000;  // of each PE and run
  std::uint64_t chares = 4;          // of each PE
  std::uint64_t bins = 4096;         // of each chare
  std::uint64_t runs = 5;
  std::uint64_t pes = 1;

  RandomPlaces values_of(int pe) const { return {pe, chares * pes, bins}; }
  void pup(auto& p) { p | is_aggregated | values | chares | bins | runs | pes; }
};

using Counts = std::vector<std::uint64_t>;

class Bins : public weft::Chare<Bins> {
 public:
  explicit Bins(std::uint64_t num_bins) : counts_(num_bins) {}
  void add(std::uint32_t bin) { ++counts_[bin]; }
  Counts counts() { return counts_; }

 private:
  Counts counts_;
};

class Counter : public weft::Chare<Counter> {
 public:
  explicit Counter(Options options) : options_(options), values_(options.values_of(pe())) { pin(pe()); }

  weft::Task<> count(weft::CollectionProxy<Bins> bins) {
    if (options_.is_aggregated) {
      co_await count_each(bins.aggregated());
    } else {
      co_await count_each(bins);
    }
  }

  // The histogram of this PE's values in all runs.
  Counts expected_counts() {
    Counts counts(options_.chares * options_.pes * options_.bins);
    RandomPlaces values = options_.values_of(pe());
    for (std::uint64_t i = 0; i < options_.values * options_.runs; ++i) {
      const Place value = values.next();
      ++counts[value.chare * options_.bins + value.word];
    }
    return counts;
  }

 private:
  template <class Elements>
  weft::Task<> count_each(Elements bins) {
    for (std::uint64_t i = 0; i < options_.values; ++i) {
      const Place value = values_.next();
      bins(static_cast<int>(value.chare)).template send<&Bins::add>(value.word);
      if (i % 64 == 63) co_await weft::room(runtime());
    }
  }

  Options options_;
  RandomPlaces values_;
};

weft::Task<> measure(weft::Runtime& runtime, Options options) {
  options.pes = static_cast<std::uint64_t>(runtime.num_pes());
  const auto num_chares = static_cast<int>(options.chares * options.pes);
  const auto bins = weft::Array<Bins>::create(runtime, {num_chares}, std::uint64_t{options.bins});
  const auto counters = weft::Group<Counter>::create(runtime, options);
  co_await runtime.quiescence();
  double best_s = 1e9;
  for (std::uint64_t run = 0; run < options.runs; ++run) {
    Stopwatch stopwatch;
    counters.send<&Counter::count>(bins);
    co_await runtime.quiescence();
    best_s = std::min(best_s, stopwatch.elapsed_s());
  }
  Counts counts;
  for (const Counts& some : co_await bins.call<&Bins::counts>())
    counts.insert(counts.end(), some.begin(), some.end());
  for (const Counts& expected : co_await counters.call<&Counter::expected_counts>()) {
    for (std::size_t bin = 0; bin < counts.size(); ++bin) counts[bin] -= expected[bin];
  }
  if (std::any_of(counts.begin(), counts.end(), [](std::uint64_t left) { return left != 0; }))
    die("counts of the histogram are wrong");
  report("rate_Mps", sizeof(std::uint32_t), static_cast<double>(options.values * options.pes) / best_s / 1e6);
}

Options parse_options(int argc, char** argv) {
  Options options;
  parse_numbers(argc, argv, kUsage,
                {{"--values", options.values},
                 {"--chares", options.chares, 1, 1000},
                 {"--bins", options.bins, 1, 1'000'000},
                 {"--runs", options.runs}},
                &options.is_aggregated);
  return options;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  const Options options = parse_options(argc, argv);
  return weft::run(argc, argv, [options](weft::Runtime& runtime) { return measure(runtime, options); });
}
