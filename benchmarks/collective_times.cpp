// Collective operations, one per run:
//
//   reduction ELEMENTS:ROUNDS:WARMUP   broadcast to an existing array and reduction over its elements: the mean time of
//                                      a round, on the PE that asked, each PE on a core of its own
//   all_to_all                         the first message of every PE to every other one: the time from the start on
//                                      PE 0 until all have arrived, and then the memory of a PE (PSS)
//
// Connections to the PE's neighbours in the spanning trees exist before the clock starts.
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

class Member : public weft::Chare<Member> {
 public:
  void keep_core() { pin(pe()); }
  void greet_all() {
    for (int pe = 0; pe < num_pes(); ++pe) proxy()[pe].send<&Member::greet>(1);
  }
  void greet(int count) {
    num_greetings_ += count;
    if (num_greetings_ == num_pes()) {
      contribute(1, weft::Reducer::kSum, proxy()[0].target<&Member::all_greeted>());
    }
  }
  void all_greeted(int) { all_greeted_.set(); }
  weft::Task<> wait_for_greetings() {
    all_greeted_ = weft::Future<>(runtime());
    co_await all_greeted_;
  }

  // The memory of this process in KiB, shared pages in equal parts. It is in two lines: /proc/self/smaps_rollup.
  double memory_kib() const {
    std::ifstream rollup("/proc/self/smaps_rollup");
    for (std::string word; rollup >> word;) {
      if (word != "Pss:") continue;
      double kib = 0;
      rollup >> kib;
      return kib;
    }
    die("the kernel does not report the memory of a process in /proc/self/smaps_rollup");
  }

 private:
  int num_greetings_ = 0;
  weft::Future<> all_greeted_;
};

weft::Task<> measure_all_to_all(weft::Runtime& runtime) {
  auto members = weft::Group<Member>::create(runtime);
  co_await members.call<&Member::memory_kib>();  // every PE has started
  auto done = members[0].call<&Member::wait_for_greetings>();
  Stopwatch stopwatch;
  members.send<&Member::greet_all>();
  co_await done;
  report("first_all_to_all_ms", sizeof(int), stopwatch.elapsed_s() * 1e3);
  std::vector<double> kib = co_await members.call<&Member::memory_kib>();
  double total_kib = 0;
  for (double one : kib) total_kib += one;
  report("pss_per_pe_MiB", 0, total_kib / static_cast<double>(kib.size()) / 1024);
}

class Element : public weft::Chare<Element> {
 public:
  void add(std::int64_t value) {
    contribute(value, weft::Reducer::kSum, proxy()[0].target<&Element::set_total>());
  }
  void set_total(std::int64_t total) { total_.set(total); }
  weft::Task<double> rounds_s(Step step) {
    Stopwatch stopwatch;
    for (std::int64_t round = 0; round < step.warmup + step.iterations; ++round) {
      if (round == step.warmup) stopwatch = Stopwatch();
      total_ = weft::Future<std::int64_t>(runtime());
      proxy().send<&Element::add>(std::int64_t{1});
      if (static_cast<std::uint64_t>(co_await total_) != collection().shape().size()) {
        die("the reduction missed elements");
      }
    }
    co_return stopwatch.elapsed_s();
  }

 private:
  weft::Future<std::int64_t> total_;
};

weft::Task<> measure_reduction(weft::Runtime& runtime, const std::vector<Step>& steps) {
  auto members = weft::Group<Member>::create(runtime);
  co_await members.call<&Member::keep_core>();
  for (const Step& step : steps) {
    auto array = weft::Array<Element>::create(runtime, {static_cast<int>(step.size_bytes)});
    report(Bench::kReduction, step, co_await array[0].call<&Element::rounds_s>(step));
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  if (argc > 1 && std::string_view(argv[1]) == "all_to_all") {
    return weft::run(argc, argv, [](weft::Runtime& runtime) { return measure_all_to_all(runtime); });
  }
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.bench != Bench::kReduction) die("usage: reduction ELEMENTS:ROUNDS:WARMUP | all_to_all");
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) {
    return measure_reduction(runtime, arguments.steps);
  });
}
