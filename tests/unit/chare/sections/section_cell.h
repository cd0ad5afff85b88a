// A chare whose sections are called and reduced, and what tests of sections share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare::section_testing {

struct Cell : Chare<Cell> {
  Cell() = default;
  explicit Cell(Moved) {}
  void pup(Pup& p) { p | total | calls | results | listed; }

  void add(int value) {
    total += value;
    ++calls;
  }
  int get() { return total; }
  int count_calls() { return calls; }
  std::uint64_t where() { return linear_index(); }
  Task<std::uint64_t> where_later() {
    for (std::uint64_t i = 0; i < linear_index() % 5; ++i) co_await yield_now(runtime());
    co_return linear_index();
  }
  int throw_from(int index) {
    if (static_cast<int>(linear_index()) >= index)
      throw std::domain_error("thrown by " + std::to_string(linear_index()));
    return 0;
  }
  double add_up(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), static_cast<double>(linear_index()));
  }
  double add_up_in_place(Payload<double> values) {
    const double* const first = values.data();
    return std::accumulate(first, first + values.size(), static_cast<double>(linear_index()));
  }
  std::string describe(Section<Cell> other) {
    return std::to_string(linear_index()) + (other.contains(index()) ? " in " : " not in ") +
           std::to_string(other.size());
  }
  void go(int to_pe) { migrate(to_pe); }

  // --- Reductions
  void give(Section<Cell> section, Future<int> sum, int times) {
    for (int i = 0; i < times; ++i) contribute(1 + i, Reducer::kSum, target_of(sum), section);
  }
  // One contribution to each of several reductions: its index + 1, with 100 times the number of the reduction.
  void give_each(Section<Cell> section, std::vector<Future<int>> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      contribute(static_cast<int>(100 * i + linear_index() + 1), Reducer::kSum, target_of(sums[i]), section);
    }
  }
  // The members make the section on their own.
  void give_to_row(Future<int> sum) {
    const int row = index()[0];
    contribute(index()[1], Reducer::kSum, target_of(sum), proxy().slice({Range::one(row), Range::all()}));
  }
  void give_index(Section<Cell> section, Future<std::vector<std::uint64_t>> all) {
    contribute(linear_index(), Reducer::kGather, target_of(all), section);
  }
  void give_list(Section<Cell> section, Future<std::vector<int>> all) {
    contribute(std::vector<int>(linear_index() % 3, static_cast<int>(linear_index())), Reducer::kConcat,
               target_of(all), section);
  }
  static int larger(int a, int b) { return a > b ? a : b; }
  void give_own(Section<Cell> section, Future<int> largest) {
    contribute<&Cell::larger>(static_cast<int>(linear_index()), target_of(largest), section);
  }
  void arrive(Section<Cell> section, Future<> all) { contribute(target_of(all), section); }
  void give_to_section(Section<Cell> from, Section<Cell> to) {
    contribute(1, Reducer::kSum, to.target<&Cell::take>(7), from);
  }
  void give_to_all(Section<Cell> from) { contribute(1, Reducer::kSum, proxy().target<&Cell::take>(8), from); }
  void give_all(Section<Cell> to) { contribute(1, Reducer::kSum, to.target<&Cell::take>(9)); }
  void take(int what, int sum) { results.emplace_back(what, sum); }
  std::vector<std::pair<int, int>> taken() { return results; }

  int total = 0;
  int calls = 0;
  std::vector<std::pair<int, int>> results;
  std::vector<std::uint64_t> listed;
};

inline void run_on(int num_pes, const char* machine, const std::function<Task<>(Runtime&)>& main) {
  SCOPED_TRACE(std::string(machine) + ", PEs: " + std::to_string(num_pes));
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run(main), "");
}

inline void run_everywhere(const std::function<Task<>(Runtime&)>& main) {
  for (const int num_pes : {1, 3, 4}) run_on(num_pes, "loopback", main);
  run_on(3, "ucx", main);
}

// GCC 12 does not compile braced lists in an expression with co_await.
template <class T, class... Values>
std::vector<T> list_of(Values... values) {
  return {static_cast<T>(values)...};
}
template <class... Ints>
Section<Cell> some_of(const CollectionProxy<Cell>& cells, Ints... indices) {
  return cells.section({Index(indices)...});
}
inline Section<Cell> none_of(const CollectionProxy<Cell>& cells) {
  return cells.section(std::vector<Index>());
}
inline Section<Cell> one_of(const CollectionProxy<Cell>& cells, int i, int j) {
  return cells.section({{i, j}});
}

inline std::vector<std::uint64_t> members_of(const Section<Cell>& section) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < section.size(); ++i) all.push_back(section[i].linear_index());
  return all;
}

}  // namespace weft::chare::section_testing
