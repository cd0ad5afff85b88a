// Sparse arrays: done_inserting, and the broadcasts, gathers and reductions over the elements it has counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sparse/sparse_cell.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::thrown_by;

TEST(SparseArray, BroadcastsAndGathersReachExactlyTheElements) {
  for (int num_pes : {1, 2, 3, 5}) {
    expect_job(num_pes, [num_pes](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, {1000, 1000});
      EXPECT_SAYS(thrown_by([&] { static_cast<void>(cells.call<&Cell::get>()); }), "have not been counted");
      co_await cells.done_inserting();
      EXPECT_TRUE((co_await cells.call<&Cell::get>()).empty());
      std::vector<int> expected;
      for (int i = 0; i < 40; ++i) {
        expected.push_back(i);
        const Index at{i, 999 - i};
        co_await cells.insert_on(i * 7 % num_pes, at, i);
      }
      // Without results a broadcast needs no set.
      cells.send<&Cell::hear>(1);
      co_await cells.done_inserting();
      EXPECT_EQ(cells.collection().num_elements(), 40U);
      for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 40; ++i) cells(i, 999 - i).send<&Cell::go>((i + round) % num_pes);
        EXPECT_EQ(co_await cells.call<&Cell::get>(), expected);
      }
      const std::vector<int> one_broadcast{1};
      for (const auto& heard : co_await cells.call<&Cell::numbers>()) EXPECT_EQ(heard, one_broadcast);
      for (int i = 0; i < 40; i += 2) co_await cells(i, 999 - i).remove();
      EXPECT_SAYS(
          co_await [](Array<Cell> all) -> Task<std::string> {
            try {
              co_await all.call<&Cell::get>();
            } catch (const std::exception& error) {
              co_return error.what();
            }
            co_return "";
          }(cells),
          "elements were inserted or removed");
      co_await cells.done_inserting();
      std::erase_if(expected, [](int i) { return i % 2 == 0; });
      EXPECT_EQ(co_await cells.call<&Cell::get>(), expected);
    });
  }
}

TEST(SparseArray, ReductionsConcernTheElementsThatWereCounted) {
  for (int num_pes : {1, 2, 3, 4, 11}) {
    expect_job(num_pes, [num_pes](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 1000);
      Future<int> built(runtime);
      for (int i = 0; i < 20; ++i) static_cast<void>(cells.insert_on(i % num_pes, i, "first", built));
      co_await runtime.quiescence();
      EXPECT_FALSE(built.is_ready());
      co_await cells.done_inserting();
      EXPECT_EQ(co_await built, 20);
      int count = 20;
      for (int round = 0; round < 6; ++round) {
        Future<int> sum(runtime);
        cells.send<&Cell::give>(round + 1, sum);
        for (int i = round; i < count; ++i) cells[i].send<&Cell::go>((i * 3 + round) % num_pes);
        EXPECT_EQ(co_await sum, (round + 1) * (count - round));
        for (int part : co_await cells.call<&Cell::take_part>(2)) EXPECT_EQ(part, 2 * (count - round));
        co_await cells.insert_on(round % num_pes, count++, 0);
        co_await cells[round].remove();
        co_await cells.done_inserting();
      }
      EXPECT_EQ(num_cells, 20);
    });
  }
}

TEST(SparseArray, AReductionThatIsNotCompleteFailsWhenElementsAreCountedAgain) {
  for (int num_pes : {1, 3}) {
    expect_job(num_pes, [](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 10);
      for (int i = 0; i < 6; ++i) co_await cells.insert(i, i);
      co_await cells.done_inserting();
      Future<int> sum(runtime);
      for (int i = 1; i < 6; ++i) cells[i].send<&Cell::give>(1, sum);
      auto part = cells[1].call<&Cell::take_part>(1);
      co_await runtime.quiescence();
      co_await cells[0].remove();
      co_await cells.done_inserting();
      EXPECT_SAYS(co_await error_of(sum), "has counted its elements again before the reduction was complete");
      EXPECT_SAYS(co_await error_of(part), "has counted its elements again");
      Future<int> next(runtime);
      cells.send<&Cell::give>(3, next);
      EXPECT_EQ(co_await next, 15);
    });
  }
}

TEST(SparseArray, DoneInsertingWaitsForWhatAllPesHaveBegun) {
  for (int num_pes : {1, 2, 4}) {
    expect_job(num_pes, [num_pes](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 10'000);
      auto keepers = Group<Keeper>::create(runtime);
      for (int pe = 0; pe < num_pes; ++pe)
        co_await keepers[pe].call<&Keeper::insert_and_leave>(cells, 1000 * pe, 200);
      std::vector<Future<>> callers;
      for (int i = 0; i < 4; ++i) callers.push_back(cells.done_inserting());
      for (const Future<>& caller : callers) co_await caller;
      EXPECT_EQ(num_cells, 200 * num_pes);
      EXPECT_EQ((co_await cells.call<&Cell::get>()).size(), 200U * static_cast<unsigned>(num_pes));
      for (int pe = 0; pe < num_pes; ++pe)
        co_await keepers[pe].call<&Keeper::remove_and_leave>(cells, 1000 * pe, 150);
      co_await cells.done_inserting();
      EXPECT_EQ(num_cells, 50 * num_pes);
      EXPECT_EQ((co_await cells.call<&Cell::get>()).size(), 50U * static_cast<unsigned>(num_pes));
      cells.send<&Cell::end>();
      co_await runtime.quiescence();
      co_await cells.done_inserting();
      EXPECT_EQ(num_cells, 0);
      EXPECT_TRUE((co_await cells.call<&Cell::get>()).empty());
    });
  }
}

// Every operation is over, whatever it was doing when the array was destroyed.
TEST(SparseArray, DestroyingEndsOperationsUnderWay) {
  for (const char* machine : {"loopback", "ucx"}) {
    expect_job(
        3,
        [](Runtime& runtime) -> Task<> {
          for (int turns = 0; turns < 24; ++turns) {
            auto cells = Array<Cell>::create_sparse(runtime, 100);
            for (int i = 0; i < 10; ++i) co_await cells.insert(i, i);
            std::vector<Future<>> begun;
            auto waits = cells[80].call<&Cell::get>();
            Future<Future<int>> started(runtime);
            auto suspended = cells[0].call<&Cell::wait>(started);
            const Future<int> gate = co_await started;
            begun.push_back(cells[0].remove());
            for (int i = 0; i < 10; ++i) {
              begun.push_back(cells.insert_on(i % 3, 20 + i, i));
              if (i > 4) begun.push_back(cells[i].remove());
            }
            if (turns % 2 == 0) begun.push_back(cells.done_inserting());
            for (int turn = 0; turn < turns / 2; ++turn) co_await yield_now(runtime);
            auto over = cells.destroy();
            for (const Future<>& one : begun) {
              const std::string error = co_await error_of(one);
              if (!error.empty() && !test_support::says(error, "is to be removed, and a method")) {
                EXPECT_SAYS(error, "has been destroyed");
              }
            }
            co_await over;
            EXPECT_SAYS(co_await error_of(waits), "Cell");
            gate.set(2);
            EXPECT_EQ(co_await suspended, 2);
            EXPECT_SAYS(thrown_by([&] { static_cast<void>(cells.insert(1, 1)); }), "has been destroyed");
            co_await runtime.quiescence();
            EXPECT_EQ(num_cells, 0);
          }
        },
        machine);
  }
}

TEST(SparseArray, AnElementThatHasContributedBeforeItIsCountedIsNotRemoved) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create_sparse(runtime, 8);
    Future<int> built(runtime);
    for (int i = 0; i < 3; ++i) co_await cells.insert(i, std::string("cell"), built);
    EXPECT_SAYS(co_await error_of(cells[1].remove()), "elements that are not counted yet");
    co_await cells.done_inserting();
    EXPECT_EQ(co_await built, 3);
    co_await cells[1].remove();
    co_await cells.done_inserting();
    EXPECT_EQ((co_await cells.call<&Cell::get>()).size(), 2U);
  });
}

// An element away from its home: the news of its end reaches the home after the request to settle.
TEST(SparseArray, DoneInsertingCountsRemovalsOfElementsAwayFromHome) {
  for (const char* machine : {"loopback", "ucx"}) {
    expect_job(
        3,
        [](Runtime& runtime) -> Task<> {
          auto cells = Array<Cell>::create_sparse(runtime, 30);
          for (int i = 0; i < 30; ++i) co_await cells.insert_on(i % 3, i, i);
          co_await cells.done_inserting();
          for (int left = 29; left > 0; --left) {
            static_cast<void>(cells[left].remove());
            co_await cells.done_inserting();
            EXPECT_EQ((co_await cells.call<&Cell::get>()).size(), static_cast<std::size_t>(left));
          }
        },
        machine);
  }
}

struct Remover : Chare<Remover> {
  Task<std::string> remove(Array<Cell> cells, int index) {
    co_return co_await error_of(cells[index].remove());
  }
};

TEST(SparseArray, ARemovalThatMeetsTheEndOfTheArrayTellsItsCaller) {
  for (int turns = 0; turns < 10; ++turns) {
    expect_job(3, [turns](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 8);
      auto removers = Group<Remover>::create(runtime);
      for (int i = 0; i < 8; ++i) co_await cells.insert_on(i % 3, i, i);
      co_await removers.created();
      std::vector<Future<std::string>> removals;
      for (int i = 0; i < 8; ++i) removals.push_back(removers[1 + i % 2].call<&Remover::remove>(cells, i));
      for (int i = 0; i < turns; ++i) co_await yield_now(runtime);
      co_await cells.destroy();
      for (const Future<std::string>& removal : removals) {
        const std::string error = co_await removal;
        if (!error.empty()) {
          EXPECT_SAYS(error, "has been destroyed");
        }
      }
    });
  }
}

}  // namespace
}  // namespace weft::chare
