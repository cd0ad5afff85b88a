#include "weft/chare/checkpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/chare/saved_chares.h"

namespace weft::chare::saved {
namespace {

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

// Charm++'s issue 3898: after a restart, collections that are new got the numbers of others.
TEST(Checkpoint, CollectionsThatWereDestroyedBeforeLeaveNoGap) {
  const TemporaryFolder folder;
  {
    InProcessJob job(2);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto first = Array<Counter>::create(runtime, {3});
      auto kept = Array<Counter>::create(runtime, {4});
      auto last = Array<Counter>::create(runtime, {5});
      co_await kept.call<&Counter::add>(7);
      co_await first.destroy();
      co_await last.destroy();
      co_await checkpoint(runtime, folder.path(), kept);
    }),
              "");
  }
  InProcessJob job(3);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto before = Array<Counter>::create(runtime, {2});
    Array<Counter> restored;
    co_await restore(runtime, folder.path(), restored);
    std::vector<Array<Counter>> after;
    for (int i = 0; i < 4; ++i) after.push_back(Array<Counter>::create(runtime, {4}));
    for (const Array<Counter>& made : after) co_await made.call<&Counter::add>(1);
    co_await before.call<&Counter::add>(1);
    const std::vector<int> expected(4, 7);
    EXPECT_EQ(co_await restored.call<&Counter::add>(0), expected);
  }),
            "");
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
      const std::string error = co_await error_of(restore(runtime, folder.path(), group));
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

}  // namespace
}  // namespace weft::chare::saved
