// Sparse arrays: insertion and removal, and what calls find meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
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

struct Syncing : Chare<Syncing> {
  void sync() { at_sync(); }
  void resume_from_sync() override {}
  void pup(Pup&) {}
};

TEST(SparseArray, ElementsAreInsertedFromAnyPeOnAnyPe) {
  for (const char* machine : {"loopback", "ucx"}) {
    expect_job(
        3,
        [](Runtime& runtime) -> Task<> {
          auto cells = Array<Cell>::create_sparse(runtime, 1000);
          EXPECT_EQ(num_cells, 0);
          co_await cells.insert(7, 70);
          co_await cells.insert_on(2, 8, 80);
          co_await cells.insert_on(0, 9);
          EXPECT_EQ(co_await cells[7].call<&Cell::get>(), 70);
          EXPECT_EQ(co_await cells[8].call<&Cell::get>(), 80);
          EXPECT_EQ(co_await cells[8].call<&Cell::pe_now>(), 2);
          EXPECT_EQ(co_await cells[9].call<&Cell::pe_now>(), 0);
          auto keepers = Group<Keeper>::create(runtime);
          for (int pe = 0; pe < 3; ++pe)
            co_await keepers[pe].call<&Keeper::insert>(cells, 100 * (pe + 1), 10);
          for (int i = 100; i < 400; i += 100) {
            EXPECT_EQ(co_await cells[i + 9].call<&Cell::get>(), i + 9);
            EXPECT_EQ(co_await cells[i].call<&Cell::pe_now>(), 3 - i / 100);
          }
          EXPECT_EQ(num_cells, 33);
          co_await cells.destroy();
          EXPECT_EQ(num_cells, 0);
        },
        machine);
  }
}

TEST(SparseArray, IndicesHaveUpToSixDimensionsAndSixtyFourBits) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    const Shape bounds({2000, 2000, 2000, 1000, 1000, 2000});
    EXPECT_GT(bounds.size(), std::uint64_t{1} << 63);
    auto cells = Array<Cell>::create_sparse(runtime, bounds);
    const Index corner{1999, 1999, 1999, 999, 999, 1999};
    co_await cells.insert(corner, 1);
    const Index origin{0, 0, 0, 0, 0, 0};
    co_await cells.insert(origin, 2);
    EXPECT_EQ(co_await cells[corner].call<&Cell::get>(), 1);
    EXPECT_EQ(co_await cells[corner].call<&Cell::where>(), bounds.size() - 1);
    co_await cells.done_inserting();
    const std::vector<int> both{2, 1};
    EXPECT_EQ(co_await cells.call<&Cell::get>(), both);
    EXPECT_SAYS(thrown_by([&] { static_cast<void>(cells.insert(Index{2000, 0, 0, 0, 0, 0}, 2)); }),
                "is outside a collection of shape");
    auto block = Array<Cell>::create_sparse(runtime, bounds.with_map(Map::kBlock));
    co_await block.insert(corner, 1);
    EXPECT_EQ(co_await block[corner].call<&Cell::pe_now>(), 1);
  });
}

TEST(SparseArray, AnInsertionFailsWithTheReasonAndTheIndexStaysFree) {
  for (int num_pes : {1, 3}) {
    expect_job(num_pes, [num_pes](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 10);
      for (int pe = 0; pe < num_pes; ++pe) {
        EXPECT_SAYS(co_await error_of(cells.insert_on(pe, 4, -1)), "a cell holds no negative value");
        EXPECT_SAYS(co_await error_of(cells[4].remove()), "Cell[4] cannot be removed: it does not exist");
      }
      // A call that waits is not lost with the element that was not made.
      auto waits = cells[4].call<&Cell::get>();
      EXPECT_SAYS(co_await error_of(cells.insert_on(num_pes - 1, 4, -1)), "no negative value");
      co_await cells.insert(4, 44);
      EXPECT_EQ(co_await waits, 44);
      EXPECT_SAYS(co_await error_of(cells.insert(4, 5)), "Cell[4] cannot be inserted: it exists already");
      co_await cells[4].call<&Cell::go>(num_pes - 1);
      EXPECT_SAYS(co_await error_of(cells.insert(4, 5)), "it exists already");
      EXPECT_SAYS(thrown_by([&] { static_cast<void>(cells.insert_on(num_pes, 5)); }),
                  "cannot be inserted on PE");
      EXPECT_SAYS(thrown_by([&] { static_cast<void>(cells.insert_on(-2, 5)); }),
                  "cannot be inserted on PE -2");
      co_await cells.done_inserting();
      EXPECT_EQ(cells.collection().num_elements(), 1U);
      EXPECT_EQ(num_cells, 1);
    });
  }
}

TEST(SparseArray, RemovedElementsAreGoneAndCanBeInsertedAgain) {
  for (int num_pes : {1, 2, 4}) {
    expect_job(num_pes, [num_pes](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 100);
      for (int round = 0; round < 12; ++round) {
        co_await cells.insert_on(round % num_pes, 5, round);
        EXPECT_EQ(num_cells, 1);
        for (int i = 0; i < round % 4; ++i) co_await cells[5].call<&Cell::go>((round * 3 + i) % num_pes);
        EXPECT_EQ(co_await cells[5].call<&Cell::get>(), round);
        if (round % 2 == 0) {
          co_await cells[5].remove();
        } else {
          cells[5].send<&Cell::end>();
          co_await cells.done_inserting();
          EXPECT_EQ(cells.collection().num_elements(), 0U);
        }
        EXPECT_EQ(num_cells, 0);
      }
      EXPECT_SAYS(co_await error_of(cells[5].remove()), "it does not exist");
    });
  }
}

TEST(SparseArray, ARemovalWaitsForMethodsAndForAMove) {
  expect_job(3, [](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create_sparse(runtime, 100);
    co_await cells.insert_on(1, 5, 3);
    Future<Future<int>> begun(runtime);
    auto waiting = cells[5].call<&Cell::wait>(begun);
    const Future<int> gate = co_await begun;
    auto first = cells[5].remove();
    auto second = cells[5].remove();
    EXPECT_EQ(co_await cells[5].call<&Cell::get>(), 3);
    EXPECT_FALSE(first.is_ready());
    // It would wait for a method that may wait for it.
    EXPECT_SAYS(co_await error_of(cells.done_inserting()),
                "Cell[5] on PE 1 is to be removed, and a method of it waits. Await the removal first");
    gate.set(8);
    EXPECT_EQ(co_await waiting, 8);
    co_await first;
    co_await second;
    EXPECT_EQ(num_cells, 0);
    co_await cells.done_inserting();

    co_await cells.insert_on(1, 5, 4);
    cells[5].send<&Cell::go>(2);
    co_await cells[5].remove();
    EXPECT_EQ(num_cells, 0);
    co_await cells.insert_on(2, 5, 5);
    EXPECT_EQ(co_await cells[5].call<&Cell::get>(), 5);
  });
}

TEST(SparseArray, CallsWaitForElementsUntilTheFirstSetIsCounted) {
  for (const char* machine : {"loopback", "ucx"}) {
    expect_job(
        3,
        [](Runtime& runtime) -> Task<> {
          auto cells = Array<Cell>::create_sparse(runtime, 100);
          std::vector<Future<int>> results;
          for (int i = 0; i < 30; ++i) results.push_back(cells[i].call<&Cell::get>());
          for (int i = 0; i < 30; ++i) cells[i].send<&Cell::keep>(std::vector<double>(20'000));
          for (int i = 0; i < 30; ++i) co_await cells.insert_on((i + 1) % 3, i, i);
          for (int i = 0; i < 30; ++i) EXPECT_EQ(co_await results[static_cast<std::size_t>(i)] % 20'000, i);
          co_await runtime.quiescence();
          EXPECT_EQ(co_await cells[7].call<&Cell::get>(), 20'007);
          // A removed element is like one that was never there.
          co_await cells[7].remove();
          auto again = cells[7].call<&Cell::get>();
          auto never = cells[99].call<&Cell::get>();
          co_await cells.insert(7, 1);
          EXPECT_EQ(co_await again, 1);
          co_await cells.done_inserting();
          EXPECT_SAYS(co_await error_of(never), "Cell[99].get from PE 0 finds no element");
          EXPECT_SAYS(co_await error_of(cells[98].call<&Cell::get>()), "Cell[98] does not exist");
          co_await cells[7].remove();
          EXPECT_SAYS(co_await error_of(cells[7].call<&Cell::get>()), "Cell[7] does not exist");
        },
        machine);
  }
}

TEST(SparseArray, ACallToAMissingElementThatNothingAwaitsEndsTheJob) {
  testing::InProcessJob job(2);
  EXPECT_SAYS(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create_sparse(runtime, 10);
    co_await cells.done_inserting();
    cells[3].send<&Cell::set>(1);
    co_await runtime.quiescence();
  }),
              "Cell[3].set from PE 0 finds no element");
}

TEST(SparseArray, WhatWaitsForMissingElementsIsBounded) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create_sparse(runtime, 10);
    int refused = 0;
    std::vector<Future<void>> results;
    for (int i = 0; i < 20; ++i) results.push_back(cells[0].call<&Cell::keep>(std::vector<double>(500'000)));
    co_await runtime.quiescence();
    for (const Future<void>& result : results) {
      if (!result.is_ready()) continue;
      ++refused;
      EXPECT_SAYS(co_await error_of(result),
                  "calls of 64 MiB wait for elements of that collection on PE 0 already");
    }
    EXPECT_EQ(refused, 4);  // of 20 calls of 4 MB, 16 fit
    co_await cells.insert(0, 0);
    co_await runtime.quiescence();
    EXPECT_EQ(co_await cells[0].call<&Cell::get>(), 16 * 500'000);
  });
}

TEST(SparseArray, RefusesWhatItDoesNotServe) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    auto array = Array<Cell>::create(runtime, 2);
    EXPECT_SAYS(thrown_by([&] { static_cast<void>(array.insert(0)); }), "insert() is for sparse arrays");
    EXPECT_SAYS(thrown_by([&] { static_cast<void>(array[0].remove()); }), "remove() is for sparse arrays");
    EXPECT_SAYS(thrown_by([&] { static_cast<void>(array.done_inserting()); }), "is for sparse arrays");
    EXPECT_SAYS(co_await error_of(array[0].call<&Cell::end>()), "remove_self() is for sparse arrays");
    EXPECT_SAYS(thrown_by([&] { Array<Cell>::create_sparse(runtime, Shape(2).with_table({0, 1})); }),
                "cannot have a table of PEs");
    auto syncing = Array<Syncing>::create_sparse(runtime, 2);
    co_await syncing.insert(0);
    EXPECT_SAYS(co_await error_of(syncing[0].call<&Syncing::sync>()),
                "takes part in periodic load balancing only");
    auto cells = Array<Cell>::create_sparse(runtime, 2);
    co_await cells.insert(0, 1);
    EXPECT_SAYS(co_await error_of(checkpoint(runtime, ::testing::TempDir() + "sparse_checkpoint", cells)),
                "await done_inserting() before");
  });
}

// An element with channels is not removed: its ends would be lost with it.
struct Talker : Chare<Talker> {
  void open() { channel.emplace(*this, proxy()[1]); }
  std::optional<Channel> channel;
};

TEST(SparseArray, AnElementWithChannelsIsNotRemoved) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create_sparse(runtime, 4);
    co_await talkers.insert(0);
    co_await talkers.insert(1);
    co_await talkers[0].call<&Talker::open>();
    EXPECT_SAYS(co_await error_of(talkers[0].remove()), "Talker[0] on PE 0 cannot be removed: ");
    co_await talkers.done_inserting();
    EXPECT_EQ(talkers.collection().num_elements(), 2U);
    co_await talkers.destroy();
  });
}

// Its part would be in the next set of elements, which does not count it.

int home_on_pe_0(const Index&, const Shape&, int) { return 0; }

TEST(SparseArray, BoundsWithAFunctionAsTheirMapAskItForInsertedIndicesOnly) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create_sparse(runtime, Shape{1 << 30, 1 << 30}.with_map<&home_on_pe_0>());
    const Index far{1 << 29, 5};
    co_await cells.insert(far, 3);
    EXPECT_EQ(co_await cells[far].call<&Cell::pe_now>(), 0);
  });
}

// A call that waits for its condition would be lost with the element.
struct Patient : Chare<Patient> {
  int take(int number) { return number; }
  bool is_open(int) const { return opened; }
  void open() { opened = true; }
  using WhenConditions = weft::WhenConditions<When<&Patient::take, &Patient::is_open>>;
  bool opened = false;
};

TEST(SparseArray, AnElementWithWaitingCallsIsNotRemoved) {
  expect_job(2, [](Runtime& runtime) -> Task<> {
    auto patients = Array<Patient>::create_sparse(runtime, 4);
    co_await patients.insert(1);
    co_await patients.done_inserting();
    auto waits = patients[1].call<&Patient::take>(7);
    co_await runtime.quiescence();
    EXPECT_SAYS(co_await error_of(patients[1].remove()), "1 of its calls wait for their conditions");
    co_await patients[1].call<&Patient::open>();
    EXPECT_EQ(co_await waits, 7);
    co_await patients[1].remove();
  });
}

}  // namespace
}  // namespace weft::chare
