// Sparse arrays: insertion, removal, done_inserting, and what calls, broadcasts and reductions find meanwhile.
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

namespace weft::chare {
namespace {

int alive = 0;

struct Cell : Chare<Cell> {
  Cell() { ++alive; }
  explicit Cell(int value_in) : value(value_in) {
    if (value < 0) throw std::invalid_argument("a cell holds no negative value");
    ++alive;
  }
  Cell(std::string name_in, Future<int> built) : name(std::move(name_in)) {
    ++alive;
    contribute(1, Reducer::kSum, target_of(built));
  }
  explicit Cell(Moved) { ++alive; }
  ~Cell() override { --alive; }
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

struct Syncing : Chare<Syncing> {
  void sync() { at_sync(); }
  void resume_from_sync() override {}
  void pup(Pup&) {}
};

template <class T>
Task<std::string> error_of(Future<T> future) {
  try {
    co_await future;
  } catch (const std::exception& error) {
    co_return error.what();
  }
  co_return "";
}

template <class Call>
std::string thrown_by(Call call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_SAYS(text, part) EXPECT_TRUE(test_support::says(text, part))

void expect_job(int num_pes, const std::function<Task<>(Runtime&)>& body, const char* machine = "loopback") {
  SCOPED_TRACE(std::to_string(num_pes) + " PEs, " + machine);
  alive = 0;
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run(body), "");
}

TEST(SparseArray, ElementsAreInsertedFromAnyPeOnAnyPe) {
  for (const char* machine : {"loopback", "ucx"}) {
    expect_job(
        3,
        [](Runtime& runtime) -> Task<> {
          auto cells = Array<Cell>::create_sparse(runtime, 1000);
          EXPECT_EQ(alive, 0);
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
          EXPECT_EQ(alive, 33);
          co_await cells.destroy();
          EXPECT_EQ(alive, 0);
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
      EXPECT_EQ(alive, 1);
    });
  }
}

TEST(SparseArray, RemovedElementsAreGoneAndCanBeInsertedAgain) {
  for (int num_pes : {1, 2, 4}) {
    expect_job(num_pes, [num_pes](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create_sparse(runtime, 100);
      for (int round = 0; round < 12; ++round) {
        co_await cells.insert_on(round % num_pes, 5, round);
        EXPECT_EQ(alive, 1);
        for (int i = 0; i < round % 4; ++i) co_await cells[5].call<&Cell::go>((round * 3 + i) % num_pes);
        EXPECT_EQ(co_await cells[5].call<&Cell::get>(), round);
        if (round % 2 == 0) {
          co_await cells[5].remove();
        } else {
          cells[5].send<&Cell::end>();
          co_await cells.done_inserting();
          EXPECT_EQ(cells.collection().num_elements(), 0U);
        }
        EXPECT_EQ(alive, 0);
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
    EXPECT_EQ(alive, 0);
    co_await cells.done_inserting();

    co_await cells.insert_on(1, 5, 4);
    cells[5].send<&Cell::go>(2);
    co_await cells[5].remove();
    EXPECT_EQ(alive, 0);
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
      EXPECT_EQ(alive, 20);
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
      EXPECT_EQ(alive, 200 * num_pes);
      EXPECT_EQ((co_await cells.call<&Cell::get>()).size(), 200U * static_cast<unsigned>(num_pes));
      for (int pe = 0; pe < num_pes; ++pe)
        co_await keepers[pe].call<&Keeper::remove_and_leave>(cells, 1000 * pe, 150);
      co_await cells.done_inserting();
      EXPECT_EQ(alive, 50 * num_pes);
      EXPECT_EQ((co_await cells.call<&Cell::get>()).size(), 50U * static_cast<unsigned>(num_pes));
      cells.send<&Cell::end>();
      co_await runtime.quiescence();
      co_await cells.done_inserting();
      EXPECT_EQ(alive, 0);
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
            EXPECT_EQ(alive, 0);
          }
        },
        machine);
  }
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
    EXPECT_SAYS(co_await error_of(syncing[0].call<&Syncing::sync>()), "takes no part in load balancing yet");
    auto cells = Array<Cell>::create_sparse(runtime, 2);
    co_await cells.insert(0, 1);
    EXPECT_SAYS(co_await error_of(checkpoint(runtime, ::testing::TempDir() + "sparse_checkpoint", cells)),
                "is a sparse array");
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
