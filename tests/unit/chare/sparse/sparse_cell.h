// Elements of sparse arrays, and the jobs of their tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {

// How many live on all PEs of the test's job.
inline int num_cells = 0;

struct Cell : Chare<Cell> {
  Cell() { ++num_cells; }
  explicit Cell(int value_in) : value(value_in) {
    if (value < 0) throw std::invalid_argument("a cell holds no negative value");
    ++num_cells;
  }
  Cell(std::string name_in, Future<int> built) : name(std::move(name_in)) {
    ++num_cells;
    contribute(1, Reducer::kSum, target_of(built));
  }
  explicit Cell(Moved) { ++num_cells; }
  ~Cell() override { --num_cells; }
  void pup(Pup& p) { p | value | name | heard; }

  int get() { return value; }
  void set(int value_in) { value = value_in; }
  void hear(int number) { heard.push_back(number); }
  std::vector<int> numbers() { return heard; }
  int pe_now() { return pe(); }
  void go(int to_pe) { migrate(to_pe); }
  void end() { remove_self(); }
  std::uint64_t where() { return linear_index(); }
  void give(int part, Future<int> sum) { contribute(part, Reducer::kSum, target_of(sum)); }
  Task<int> take_part(int part) { co_return co_await allreduce(part, Reducer::kSum); }
  // Gives the future for which it waits to its caller.
  Task<int> wait(Future<Future<int>> begun) {
    Future<int> gate(runtime());
    begun.set(gate);
    co_return co_await gate;
  }
  void keep(const std::vector<double>& values) { value += static_cast<int>(values.size()); }

  int value = 0;
  std::string name;
  std::vector<int> heard;
};

// Inserts and removes from its own PE.
struct Keeper : Chare<Keeper> {
  Task<> insert(Array<Cell> cells, int first, int count) {
    for (int i = first; i < first + count; ++i) co_await cells.insert_on(num_pes() - 1 - pe(), i, i);
  }
  // Awaits nothing.
  void insert_and_leave(Array<Cell> cells, int first, int count) {
    for (int i = first; i < first + count; ++i) static_cast<void>(cells.insert(i, i));
  }
  void remove_and_leave(Array<Cell> cells, int first, int count) {
    for (int i = first; i < first + count; ++i) static_cast<void>(cells[i].remove());
  }
};

inline void expect_job(int num_pes, const std::function<Task<>(Runtime&)>& body,
                       const char* machine = "loopback") {
  SCOPED_TRACE(std::to_string(num_pes) + " PEs, " + machine);
  num_cells = 0;
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run(body), "");
}

}  // namespace weft::chare

#define EXPECT_SAYS(text, part) EXPECT_TRUE(::weft::test_support::says(text, part))
