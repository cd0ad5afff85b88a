// What cannot be saved or restored, and damaged checkpoints.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/chare/saved_chares.h"

namespace weft::chare::saved {
namespace {

// The same name as a class of kill_test.cpp.
struct Twin : Chare<Twin> {
  void pup(Pup&) {}
};

TEST(Checkpoint, RefusesWhatCannotBeSavedAndTheJobGoesOn) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const std::string& path = folder.path();
    const std::string nowhere = "/dev/null/x";
    auto plain = Array<Plain>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, path, plain)), "void pup(weft::Pup& p)"));
    auto twins = Array<Twin>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, path, twins)), "two classes or maps of the name"));
    auto note = Singleton<Note>::create(runtime, 1);
    auto cells = Array<Cell>::create(runtime, {3}, note, 10);
    EXPECT_TRUE(
        says(co_await error_of(checkpoint(runtime, path, cells)),
             "on PE 0 cannot be saved: its state has a proxy of the collection weft::chare::saved::Note, "
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
    EXPECT_TRUE(says(error, "while the checkpoint was being written"));
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
      warning = co_await error_of(restore(runtime, folder.path(), counters, step));
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
  // It is set aside: the whole ones that stay are as many as before, and no later one gets its number.
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoint-3.damaged/elements-1"));
  {
    InProcessJob job(2);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Counter> counters;
      int step = 0;
      co_await restore(runtime, folder.path(), counters, step);
      co_await checkpoint(runtime, folder.path(), counters, step);
    }),
              "");
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoint-2"));
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoint-4"));
  std::filesystem::remove_all(folder / "checkpoint-4");
  std::filesystem::resize_file(folder / "checkpoint-2/manifest", 30);
  EXPECT_EQ(restored_step(said), 0);
  EXPECT_TRUE(says(said, folder / "checkpoint-2/manifest"));
}

// Such a file may be read tomorrow; an older checkpoint would lose the work since then.
TEST(Checkpoint, AFileThatCannotBeOpenedIsNoReasonToGoBack) {
  const TemporaryFolder folder;
  save(2, folder.path());
  save(2, folder.path());
  const std::string file = folder / "checkpoint-2/elements-0";
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file, file);  // ELOOP, for any user
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    Array<Cell> cells;
    Singleton<Note> note;
    int step = 0;
    std::string text;
    const std::string error = co_await error_of(restore(runtime, folder.path(), cells, note, step, text));
    EXPECT_TRUE(says(error, file));
    EXPECT_EQ(step, 0);
  }),
            "");
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoint-2/manifest"));
}

struct Counted : Chare<Counted> {
  Counted() { ++alive; }
  ~Counted() override { --alive; }
  void pup(Pup&) {}
  static inline int alive = 0;
};

// Values of other types: the caller gets no proxies, so nothing else could free the elements.
TEST(Checkpoint, WhatWasMadeEndsIfTheValuesCannotBeRead) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto counted = Array<Counted>::create(runtime, {4});
    co_await checkpoint(runtime, folder.path(), counted, 1);
    EXPECT_EQ(Counted::alive, 4);
    Array<Counted> again;
    EXPECT_TRUE(says(co_await error_of(restore(runtime, folder.path(), again)), "4 bytes are left"));
    co_await runtime.quiescence();
    EXPECT_EQ(Counted::alive, 4);
  }),
            "");
}

// Its size depends on whether it is packed.
struct Uneven {
  void pup(Pup& p) {
    int value = 0;
    p | value;
    if (p.is_sizing()) p | value;
  }
};

TEST(Checkpoint, RefusesValuesThatVisitOtherMembersWhenTheyArePacked) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    try {
      static_cast<void>(checkpoint(runtime, folder.path(), counters, Uneven{}));
      ADD_FAILURE() << "it was saved";
    } catch (const base::Error& error) {
      EXPECT_TRUE(says(error.what(), "must visit the same members each time"));
    }
    co_return;
  }),
            "");
  EXPECT_FALSE(has_checkpoint(folder.path()));
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
    EXPECT_TRUE(says(co_await error_of(restore(runtime, none, cells)), "has no checkpoint"));
    EXPECT_TRUE(
        says(co_await error_of(restore(runtime, folder.path(), cells, note, step)), "bytes are left"));
    // A class whose state has changed is no reason to go back to an older checkpoint.
    Cell::reads_too_much = true;
    const std::string changed = co_await error_of(restore(runtime, folder.path(), cells, note, step));
    Cell::reads_too_much = false;
    EXPECT_TRUE(says(changed, "cannot be restored"));
    EXPECT_EQ(changed.find("no whole checkpoint"), std::string::npos) << changed;
    Cell::throws_when_migrated = true;
    const std::string error = co_await error_of(restore(runtime, folder.path(), cells, note, step));
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
}  // namespace weft::chare::saved
