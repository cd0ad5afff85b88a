// An element that logs the aggregated calls that reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare::bundle_testing {

struct BundledLog : Chare<BundledLog> {
  void pup(Pup& p) { p | numbers | text; }

  void note(std::uint64_t number) { numbers.push_back(number); }
  void note_and_set(std::uint64_t number, Future<> noted) {
    note(number);
    noted.set();
  }
  void write(const std::string& part, std::span<const double> values) {
    text += part + std::to_string(std::accumulate(values.begin(), values.end(), 0.0));
  }
  void take_large(const std::vector<std::uint64_t>& values) { numbers.push_back(values.size()); }
  void fail() { throw std::runtime_error("a mistake"); }
  int answer() { return 42; }
  Task<> note_later(std::uint64_t number, std::span<const std::uint64_t> more) {
    co_await yield_now(runtime());
    numbers.push_back(number);
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  void go(int to_pe) { migrate(to_pe); }
  // Aggregated calls of this PE, without a flush.
  void note_at(const CollectionProxy<BundledLog>& logs, int element, std::uint64_t count) {
    const auto many = logs.aggregated();
    for (std::uint64_t i = 0; i < count; ++i) many[element].send<&BundledLog::note>(i);
  }
  std::vector<std::uint64_t> all_numbers() { return numbers; }
  std::string all_text() { return text; }

  std::vector<std::uint64_t> numbers;
  std::string text;
};

using Logs = Array<BundledLog>;

// The calls of the job go through a grid, as they do between many PEs. Before the first one.
inline void use_grid(testing::InProcessJob& job) {
  for (int pe = 0; pe < job.num_pes(); ++pe)
    job.runtime(pe).model<Chares>().bundles().set_ways(Bundles::Ways::kGrid);
}

// 0, 1, ... count - 1.
inline std::vector<std::uint64_t> numbers_below(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

}  // namespace weft::chare::bundle_testing
