#include "weft/chare/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/in_process_job.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::chare {
namespace {

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

template <class T>
Task<std::string> error_of(Future<T> future) {
  try {
    co_await future;
  } catch (const base::Error& error) {
    co_return error.what();
  }
  co_return "";
}

template <class... Values>
Task<std::string> error_of_restoring(Runtime& runtime, std::string folder, Values&... values) {
  try {
    co_await restore(runtime, folder, values...);
  } catch (const base::Error& error) {
    co_return error.what();
  }
  co_return "";
}

bool says(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  ADD_FAILURE() << "'" << text << "' does not say '" << part << "'";
  return false;
}
bool says(const std::string& text, const std::string& part) { return says(text, part.c_str()); }

constexpr int kNumCells = 7;

// A job that makes cells, lets them work and move, and saves them.
void save(int num_pes, const std::string& folder, const char* machine = "loopback", int field_size = 1000) {
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

// A job that restores them and uses all that a collection can do.
void restore_and_use(int num_pes, const std::string& folder, const char* machine = "loopback",
                     int field_size = 1000) {
  InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    Array<Cell> cells;
    Singleton<Note> note;
    int step = 0;
    std::string text;
    co_await restore(runtime, folder, cells, note, step, text);
    EXPECT_EQ(step, 41);
    EXPECT_EQ(text, "values");
    EXPECT_EQ(cells.shape().size(), static_cast<std::uint64_t>(kNumCells));
    for (int i = 0; i < kNumCells; ++i) {
      EXPECT_EQ(co_await cells[i].call<&Cell::pe_now>(),
                cells.shape().home(static_cast<std::uint64_t>(i), num_pes));
      // It may have moved before it was saved, which counts as an arrival.
      const std::string state = co_await cells[i].call<&Cell::check>();
      EXPECT_TRUE(state.starts_with(std::to_string(field_size) + ",")) << state;
      EXPECT_TRUE(state.ends_with(",0")) << state;
      EXPECT_EQ(co_await cells[i].call<&Cell::total_of_neighbour>(), 100 + (i + 1) % kNumCells);
      EXPECT_EQ(co_await cells[i].call<&Cell::is_pinned_now>(), i == 4 ? 1 : 0);
    }
    EXPECT_EQ(co_await note.element().call<&Note::read>(), "saved;");
    cells.send<&Cell::say>("x");
    co_await runtime.quiescence();
    EXPECT_EQ(co_await note.element().call<&Note::read>(), "saved;xxxxxxx");
    for (int round = 1; round <= 3; ++round) {
      for (const int sum : co_await cells.call<&Cell::sum>(round)) EXPECT_EQ(sum, round * kNumCells);
    }
    cells.send<&Cell::contribute_alone>();
    co_await runtime.quiescence();
    EXPECT_EQ((co_await cells.call<&Cell::total>())[6], 106 + kNumCells);
    for (const int to_pe : {num_pes - 1, 0, num_pes / 2}) {
      co_await cells[1].call<&Cell::go>(to_pe);
      EXPECT_EQ(co_await cells[1].call<&Cell::pe_now>(), to_pe);
      EXPECT_EQ((co_await cells.call<&Cell::sum>(1))[1], kNumCells);
    }
    co_await cells.destroy();
    co_await note.destroy();
  }),
            "");
}

TEST(Checkpoint, RestoresOnAnyNumberOfPes) {
  for (const int saved_on : {1, 2, 3}) {
    const TemporaryFolder folder;
    EXPECT_FALSE(has_checkpoint(folder.path()));
    save(saved_on, folder.path());
    EXPECT_TRUE(has_checkpoint(folder.path()));
    for (const int restored_on : {1, 2, 3, 5}) {
      SCOPED_TRACE(std::to_string(saved_on) + " to " + std::to_string(restored_on));
      restore_and_use(restored_on, folder.path());
    }
  }
}

TEST(Checkpoint, WorksOverUcxWithLargeStates) {
  const TemporaryFolder folder;
  save(2, folder.path(), "ucx", 400'000);
  restore_and_use(3, folder.path(), "ucx", 400'000);
}

int reversed(const Index& index, const Shape& shape, int num_pes) {
  return (shape.extent(0) - 1 - index[0]) % num_pes;
}

TEST(Checkpoint, MapsOfAnyKindPlaceTheElements) {
  const TemporaryFolder folder;
  {
    InProcessJob job(3);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto mapped = Array<Counter>::create(runtime, Shape{6}.with_map<&reversed>());
      auto dealt = Array<Counter>::create(runtime, Shape({3, 2}).with_map(Map::kRoundRobin));
      auto table = Array<Counter>::create(runtime, Shape{6}.with_table({2, 2, 2, 0, 0, 1}));
      auto last = Singleton<Counter>::create(runtime, 2);
      co_await mapped.call<&Counter::add>(1);
      co_await table.call<&Counter::add>(2);
      co_await checkpoint(runtime, folder.path(), mapped, dealt, table, last);
    }),
              "");
  }
  for (const int num_pes : {2, 3, 4}) {
    InProcessJob job(num_pes);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Counter> mapped;
      Array<Counter> dealt;
      Array<Counter> table;
      Singleton<Counter> last;
      co_await restore(runtime, folder.path(), mapped, dealt, table, last);
      EXPECT_EQ(mapped.shape().home(0, num_pes), 5 % num_pes);
      EXPECT_EQ(dealt.shape().home(5, num_pes), 5 % num_pes);
      EXPECT_EQ(dealt.shape().extent(1), 2);
      EXPECT_EQ(table.shape().map(), num_pes == 3 ? Map::kTable : Map::kBlock);
      EXPECT_EQ(last.shape().home(0, num_pes), 2 % num_pes);
      EXPECT_EQ((co_await mapped.call<&Counter::add>(0)), std::vector<int>(6, 1));
      EXPECT_EQ((co_await dealt.call<&Counter::add>(0)), std::vector<int>(6, 0));
      EXPECT_EQ((co_await table.call<&Counter::add>(0)), std::vector<int>(6, 2));
      EXPECT_EQ(co_await last.element().call<&Counter::add>(9), 9);
    }),
              "");
  }
}

TEST(Checkpoint, AGroupNeedsAsManyPes) {
  const TemporaryFolder folder;
  {
    InProcessJob job(2);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto group = Group<Counter>::create(runtime);
      co_await group[1].call<&Counter::add>(5);
      co_await checkpoint(runtime, folder.path(), group);
    }),
              "");
  }
  for (const int num_pes : {2, 3}) {
    InProcessJob job(num_pes);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Group<Counter> group;
      const std::string error = co_await error_of_restoring(runtime, folder.path(), group);
      if (num_pes == 2) {
        EXPECT_EQ(error, "");
        const std::vector<int> expected{0, 5};
        EXPECT_EQ((co_await group.call<&Counter::add>(0)), expected);
        EXPECT_EQ(group.on_this_pe()->index(), 0);
      } else {
        EXPECT_TRUE(says(error, "with one element on each of 2 PEs; this job has 3 PEs"));
      }
    }),
              "");
  }
}

TEST(Checkpoint, AnyPeLeadsAndSeveralOneAfterTheOther) {
  const TemporaryFolder folder;
  InProcessJob job(3);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto savers = Group<Saver>::create(runtime);
    auto counters = Array<Counter>::create(runtime, {5});
    for (int pe = 0; pe < 3; ++pe) {
      co_await counters.call<&Counter::add>(1);
      co_await savers[pe].call<&Saver::save>(folder.path(), counters);
      Array<Counter> restored = co_await savers[2 - pe].call<&Saver::load>(folder.path());
      const std::vector<int> expected(5, pe + 11);
      EXPECT_EQ(co_await restored.call<&Counter::add>(10), expected);
      EXPECT_EQ(restored.collection().id() >> 32, static_cast<std::uint64_t>(2 - pe));
    }
    // Two at a time into one folder: one of them is refused, and what it leaves does not harm the other.
    auto first = savers[0].call<&Saver::save>(folder.path(), counters);
    auto second = savers[1].call<&Saver::save>(folder.path(), counters);
    const std::string errors = co_await error_of(first) + co_await error_of(second);
    EXPECT_TRUE(says(errors, "another checkpoint is being written into"));
    Array<Counter> restored;
    co_await restore(runtime, folder.path(), restored);
    const std::vector<int> expected(5, 3);
    EXPECT_EQ(co_await restored.call<&Counter::add>(0), expected);
  }),
            "");
}

TEST(Checkpoint, RefusesWhatCannotBeSavedAndTheJobGoesOn) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const std::string& path = folder.path();
    const std::string nowhere = "/dev/null/x";
    auto plain = Array<Plain>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, path, plain)), "void pup(weft::Pup& p)"));
    auto note = Singleton<Note>::create(runtime, 1);
    auto cells = Array<Cell>::create(runtime, {3}, note, 10);
    EXPECT_TRUE(says(
        co_await error_of(checkpoint(runtime, path, cells)),
        "on PE 0 cannot be saved: its state has a proxy of the collection weft::chare::{anonymous}::Note, "
        "which is not part"));
    Future<> gate(runtime);
    cells[0].send<&Cell::wait>(gate);
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, path, cells, note)),
                     "Cell[0] on PE 0 has 1 coroutine that waits"));
    gate.set();
    cells[2].send<&Cell::hold>(gate);
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, path, cells, note)), "holds a future"));
    cells[2].send<&Cell::hold>(Future<>());
    cells[1].send<&Cell::contribute_alone>();
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, path, cells, note)),
                     "have contributed to 1 reductions and others to 0"));
    cells[0].send<&Cell::contribute_alone>();
    cells[2].send<&Cell::contribute_alone>();
    EXPECT_FALSE(has_checkpoint(path));
    EXPECT_FALSE(std::filesystem::exists(path + "/checkpoint-1.partial"));
    try {
      static_cast<void>(checkpoint(runtime, path, gate));
      ADD_FAILURE() << "a future was saved";
    } catch (const base::Error& error) {
      EXPECT_TRUE(says(error.what(), "a value of the checkpoint holds a future"));
    }
    co_await checkpoint(runtime, path, cells, note);
    EXPECT_TRUE(has_checkpoint(path));
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, nowhere, note)), "/dev/null/x"));
    co_await note.destroy();
    try {
      static_cast<void>(checkpoint(runtime, path, note));
      ADD_FAILURE() << "a destroyed collection was saved";
    } catch (const base::Error& error) {
      EXPECT_TRUE(says(error.what(), "has been destroyed"));
    }
  }),
            "");
}

TEST(Checkpoint, NoticesWorkBetweenQuiescenceAndTheEnd) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    co_await counters.created();
    Counter::calls_itself = true;
    auto saving = checkpoint(runtime, folder.path(), counters);
    const std::string error = co_await error_of(saving);
    Counter::calls_itself = false;
    EXPECT_TRUE(says(error, "while the checkpoint into"));
    EXPECT_FALSE(has_checkpoint(folder.path()));
    co_await checkpoint(runtime, folder.path(), counters);
    EXPECT_TRUE(has_checkpoint(folder.path()));
  }),
            "");
}

TEST(Checkpoint, ADamagedOneIsNamedAndTheOneBeforeRestored) {
  const TemporaryFolder folder;
  {
    InProcessJob job(2);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto counters = Array<Counter>::create(runtime, {4});
      for (int step = 1; step <= 3; ++step) {
        co_await counters.call<&Counter::add>(1);
        co_await checkpoint(runtime, folder.path(), counters, step);
      }
    }),
              "");
  }
  const auto restored_step = [&](std::string& warning) {
    int step = 0;
    InProcessJob job(3);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Counter> counters;
      warning = co_await error_of_restoring(runtime, folder.path(), counters, step);
      if (step != 0) {
        EXPECT_EQ((co_await counters.call<&Counter::add>(0)), std::vector<int>(4, step));
      }
    }),
              "");
    warning += ::testing::internal::GetCapturedStderr();
    return step;
  };
  std::string said;
  EXPECT_EQ(restored_step(said), 3);
  EXPECT_EQ(said, "");
  // A bit of a state, which only reading the file shows.
  const std::string file = folder / "checkpoint-3/elements-1";
  std::vector<char> bytes = testing::read_all(file);
  bytes[25] = static_cast<char>(bytes[25] ^ 4);
  testing::write_all(file, bytes);
  EXPECT_EQ(restored_step(said), 2);
  EXPECT_TRUE(says(said, "the checkpoint file " + file + " is damaged"));
  EXPECT_TRUE(says(said, "restoring " + (folder / "checkpoint-2")));
  std::filesystem::resize_file(folder / "checkpoint-2/manifest", 30);
  EXPECT_EQ(restored_step(said), 0);
  EXPECT_TRUE(says(said, folder / "checkpoint-2/manifest"));
  EXPECT_TRUE(says(said, file));
}

TEST(Checkpoint, RestoringSaysWhatDoesNotFit) {
  const TemporaryFolder folder;
  save(2, folder.path());
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    Array<Cell> cells;
    Singleton<Note> note;
    int step = 0;
    const std::string none = folder / "none";
    EXPECT_TRUE(says(co_await error_of_restoring(runtime, none, cells), "has no checkpoint"));
    EXPECT_TRUE(
        says(co_await error_of_restoring(runtime, folder.path(), cells, note, step), "bytes are left"));
    // A class whose state has changed is no reason to go back to an older checkpoint.
    Cell::reads_too_much = true;
    const std::string changed = co_await error_of_restoring(runtime, folder.path(), cells, note, step);
    Cell::reads_too_much = false;
    EXPECT_TRUE(says(changed, "cannot be restored"));
    EXPECT_EQ(changed.find("no whole checkpoint"), std::string::npos) << changed;
    Cell::throws_when_migrated = true;
    const std::string error = co_await error_of_restoring(runtime, folder.path(), cells, note, step);
    Cell::throws_when_migrated = false;
    EXPECT_TRUE(says(error, "cannot be restored: no place here"));
    std::string text;
    co_await restore(runtime, folder.path(), cells, note, step,
                     text);  // nothing of the attempt is left in the way
    EXPECT_EQ((co_await cells.call<&Cell::total>())[0], 100);
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
