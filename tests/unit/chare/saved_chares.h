// Chares that the tests of checkpoints save.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/checkpoint/files.h"

// Not unnamed: a checkpoint finds classes by their names, and several files have these.
namespace weft::chare::saved {

using test_support::error_of;
using test_support::says;
using testing::InProcessJob;
using testing::TemporaryFolder;

struct Note : Chare<Note> {
  void pup(Pup& p) { p | text; }
  void write(std::string what) { text += what; }
  std::string read() { return text; }
  std::string text;
};

struct Cell : Chare<Cell> {
  Cell(Singleton<Note> note_in, int size) : note(note_in), field(static_cast<std::size_t>(size)) {
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = mark(i);
  }
  explicit Cell(Moved) {}
  void pup(Pup& p) {
    p | note | neighbour | field | count | arrivals | gate;
    if (p.is_unpacking() && reads_too_much) p | field;
  }
  void migrated() override {
    ++arrivals;
    if (throws_when_migrated) throw std::runtime_error("no place here");
  }

  std::uint64_t mark(std::size_t i) const { return linear_index() * 1000003 + i; }
  void go(int to_pe) { migrate(to_pe); }
  void pin() { set_pinned(true); }
  int pe_now() { return pe(); }
  int is_pinned_now() { return is_pinned() ? 1 : 0; }
  void know(ElementProxy<Cell> other) { neighbour = other; }
  void add(int value) { count += value; }
  int total() { return count; }
  void say(std::string what) { note.element().send<&Note::write>(what); }
  int ask_neighbour(int) { return 0; }
  Task<int> total_of_neighbour() { co_return co_await neighbour.call<&Cell::total>(); }
  Task<int> sum(int value) { co_return co_await allreduce(value, Reducer::kSum); }
  void contribute_alone() { contribute(1, Reducer::kSum, proxy().target<&Cell::add>()); }
  Task<> wait(Future<> until) { co_await until; }
  void hold(Future<> until) { gate = until; }
  std::string check() {
    for (std::size_t i = 0; i < field.size(); ++i) {
      if (field[i] != mark(i)) return "damaged";
    }
    return std::to_string(field.size()) + "," + std::to_string(arrivals) + "," + std::to_string(num_moves());
  }

  static inline bool throws_when_migrated = false;
  static inline bool reads_too_much = false;
  Singleton<Note> note;
  ElementProxy<Cell> neighbour;
  std::vector<std::uint64_t> field;
  int count = 0;
  int arrivals = 0;
  Future<> gate;
};

struct Plain : Chare<Plain> {
  void touch() {}
};

struct Counter : Chare<Counter> {
  void pup(Pup& p) {
    if (p.is_packing() && calls_itself) proxy().send<&Counter::add>(1);
    p | count;
  }
  int add(int value) { return count += value; }
  static inline bool calls_itself = false;
  int count = 0;
};

// Saves and restores from its own PE.
struct Saver : Chare<Saver> {
  Task<> save(std::string folder, Array<Counter> counters) {
    co_await checkpoint(runtime(), folder, counters);
  }
  Task<Array<Counter>> load(std::string folder) {
    Array<Counter> counters;
    co_await restore(runtime(), folder, counters);
    co_return counters;
  }
};

inline constexpr int kNumCells = 7;

// A job that makes cells, lets them work and move, and saves them.
inline void save(int num_pes, const std::string& folder, const char* machine = "loopback",
                 int field_size = 1000) {
  InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto other = Array<Plain>::create(runtime, {3});  // so that the numbers of collections differ later
    auto note = Singleton<Note>::create(runtime, runtime.num_pes() - 1);
    auto cells = Array<Cell>::create(runtime, {kNumCells}, note, field_size);
    other.send<&Plain::touch>();
    for (int i = 0; i < kNumCells; ++i) {
      cells[i].send<&Cell::know>(cells[(i + 1) % kNumCells]);
      cells[i].send<&Cell::add>(100 + i);
    }
    co_await cells.call<&Cell::sum>(1);
    co_await cells[2].call<&Cell::go>(runtime.num_pes() - 1);
    co_await cells[3].call<&Cell::go>(0);
    cells[4].send<&Cell::pin>();
    cells[0].send<&Cell::say>("saved;");
    const std::string text = "values";
    co_await checkpoint(runtime, folder, cells, note, 41, text);
    // The job goes on: what follows is not saved.
    cells.send<&Cell::add>(1000);
    EXPECT_EQ((co_await cells.call<&Cell::total>())[5], 1105);
  }),
            "");
}

}  // namespace weft::chare::saved
