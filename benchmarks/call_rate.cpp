// Calls of 8 bytes from all PEs to chares of all other PEs, one by one or aggregated in bundles: millions per second, of all PEs
// together.
//
//   call_rate --way single|aggregated|direct|grid [--calls N] [--chares N] [--runs N]
//
// direct and grid: aggregated, and the bundles go from each PE to each other one, or through a grid; else the number of PEs decides.
// Each PE makes N calls to chares that it chooses at random among those of other PEs, and waits for room now and then. The clock of PE 0
// runs from the first call until no message is under way. The best run counts.
#include <algorithm>
#include <cstdint>

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr const char* kUsage =
    "call_rate --way single|aggregated|direct|grid [--calls N] [--chares N] [--runs N]";

struct Options {
  bool is_aggregated = false;
  bool sets_ways = false;
  bool has_grid = false;
  std::uint64_t calls = 1'000'000;  // of each PE
  std::uint64_t chares = 1000;      // of each PE
  std::uint64_t runs = 5;

  void pup(auto& p) { p | is_aggregated | sets_ways | has_grid | calls | chares | runs; }
};

class Counter : public weft::Chare<Counter> {
 public:
  void add(std::uint64_t value) { sum_ += value; }
  std::uint64_t sum() { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

class Caller : public weft::Chare<Caller> {
 public:
  explicit Caller(Options options) {
    pin(pe());
    using Ways = weft::chare::Bundles::Ways;
    if (options.sets_ways)
      collection().chares().bundles().set_ways(options.has_grid ? Ways::kGrid : Ways::kDirect);
  }

  weft::Task<> make_calls(weft::CollectionProxy<Counter> counters, Options options) {
    if (options.is_aggregated) {
      co_await call_each(counters.aggregated(), options);
      counters.aggregated().flush();
    } else {
      co_await call_each(counters, options);
    }
  }

 private:
  template <class Counters>
  weft::Task<> call_each(Counters counters, Options options) {
    const std::uint64_t others = options.chares * static_cast<std::uint64_t>(num_pes() - 1);
    const std::uint64_t first_own = options.chares * static_cast<std::uint64_t>(pe());
    for (std::uint64_t i = 0; i < options.calls; ++i) {
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      std::uint64_t target = (state_ >> 32) * others >> 32;
      if (target >= first_own) target += options.chares;
      counters(static_cast<int>(target)).template send<&Counter::add>(1U);
      if (i % 64 == 63) co_await weft::room(runtime());
    }
  }

  std::uint64_t state_ = static_cast<std::uint64_t>(linear_index()) + 1;
};

weft::Task<> measure(weft::Runtime& runtime, Options options) {
  if (runtime.num_pes() < 2) die("this needs several PEs: weft run -n 2 call_rate ...");
  const auto counters =
      weft::Array<Counter>::create(runtime, {static_cast<int>(options.chares) * runtime.num_pes()});
  const auto callers = weft::Group<Caller>::create(runtime, options);
  co_await runtime.quiescence();
  const double all_calls = static_cast<double>(options.calls) * runtime.num_pes();
  double best_s = 1e9;
  for (std::uint64_t run = 0; run < options.runs; ++run) {
    Stopwatch stopwatch;
    callers.send<&Caller::make_calls>(counters, options);
    co_await runtime.quiescence();
    best_s = std::min(best_s, stopwatch.elapsed_s());
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t one : co_await counters.call<&Counter::sum>()) sum += one;
  if (sum != options.calls * options.runs * static_cast<std::uint64_t>(runtime.num_pes()))
    die("calls were lost");
  report("rate_Mps", sizeof(std::uint64_t), all_calls / best_s / 1e6);
}

Options parse_options(int argc, char** argv) {
  Options options;
  if (argc % 2 == 0) die(kUsage);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view word = argv[i + 1];
    const std::uint64_t number = number_in(word);
    const bool sets_ways = word == "direct" || word == "grid";
    if (name == "--way" && (word == "single" || word == "aggregated" || sets_ways)) {
      options.is_aggregated = word != "single";
      options.sets_ways = sets_ways;
      options.has_grid = word == "grid";
    } else if (name == "--calls" && number > 0) {
      options.calls = number;
    } else if (name == "--chares" && number > 0 && number <= 1'000'000) {
      options.chares = number;
    } else if (name == "--runs" && number > 0) {
      options.runs = number;
    } else {
      die(kUsage);
    }
  }
  return options;
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  const Options options = parse_options(argc, argv);
  return weft::run(argc, argv, [options](weft::Runtime& runtime) { return measure(runtime, options); });
}
