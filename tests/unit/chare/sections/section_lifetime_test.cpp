#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "weft/chare/section.h"

#include "tests/support/errors.h"
#include "tests/unit/chare/sections/section_cell.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::chare::section_testing {
namespace {

using test_support::error_of;
using test_support::says;

// --- Ends

TEST(Section, TheSectionOfADestroyedCollectionSaysSo) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    const auto some = some_of(cells, 7, 1, 10, 2);
    Future<int> sum(runtime);
    some.slice(0, 3).send<&Cell::give>(some, sum, 1);  // the fourth contribution does not come
    co_await runtime.quiescence();
    co_await cells.destroy();
    EXPECT_TRUE(says(co_await error_of(sum), "was destroyed before the reduction was complete"));
    const auto use = [&]() -> Task<> {
      some.send<&Cell::add>(1);
      co_return;
    };
    EXPECT_TRUE(says(co_await error_of(use()), "Cell has been destroyed; a proxy"));
    const auto call = [&]() -> Task<> { co_await some.call<&Cell::get>(); };
    EXPECT_TRUE(says(co_await error_of(call()), "Cell has been destroyed; a proxy"));
  });
}

struct Destroyer : Chare<Destroyer> {
  void destroy(CollectionProxy<Cell> cells, Future<> done) {
    cells.destroy().then([done](const auto&) mutable { done.set(); });
  }
};

TEST(Section, ACallThatComesAfterTheEndIsRefused) {
  for (const int num_pes : {2, 4}) {
    run_on(num_pes, "loopback", [num_pes](Runtime& runtime) -> Task<> {
      const auto cells = Array<Cell>::create(runtime, {12});
      const auto destroyer = Singleton<Destroyer>::create(runtime, num_pes - 1);
      co_await cells.created();
      Future<> done(runtime);
      destroyer.element().send<&Destroyer::destroy>(cells, done);
      // Until this PE has heard of the end, calls leave; each of them ends.
      int num_results = 0;
      std::string error;
      while (error.find("has been destroyed") == std::string::npos) {
        const auto call = [&]() -> Task<> {
          const auto all = co_await some_of(cells, 11, 0, 6, 7).call<&Cell::where>();
          EXPECT_EQ(all, list_of<std::uint64_t>(11, 0, 6, 7));
          ++num_results;
        };
        error = co_await error_of(call());
      }
      EXPECT_GT(num_results, 0);
      co_await done;
    });
  }
}

// --- Sparse arrays

TEST(Section, AMemberThatDoesNotExistFailsTheCall) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create_sparse(runtime, {1000});
    for (const int i : {3, 500, 999}) co_await cells.insert(i);
    co_await cells.done_inserting();
    EXPECT_EQ(co_await some_of(cells, 999, 3).call<&Cell::where>(), list_of<std::uint64_t>(999, 3));
    EXPECT_TRUE(says(co_await error_of(some_of(cells, 999, 3, 4).call<&Cell::where>()), "finds no element"));
    EXPECT_TRUE(says(co_await error_of(some_of(cells, 4).call<&Cell::where>()), "finds no element"));
  });
}

TEST(Section, ReductionsOfASparseArrayBelongToASetOfElements) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create_sparse(runtime, {1000});
    for (const int i : {3, 500, 999}) co_await cells.insert(i);
    co_await cells.done_inserting();
    const auto section = some_of(cells, 999, 3, 500);
    for (int round = 0; round < 3; ++round) {
      for (int times = 1; times < 3; ++times) {
        Future<int> sum(runtime);
        section.send<&Cell::give>(section, sum, 1);
        EXPECT_EQ(co_await sum, 3);
      }
      Future<int> never(runtime);
      some_of(cells, 3, 999).send<&Cell::give>(section, never, 1);
      co_await runtime.quiescence();
      co_await cells[500].remove();
      co_await cells.insert(500);
      co_await cells.done_inserting();
      EXPECT_TRUE(says(co_await error_of(never), "counted its elements again"));
    }
  });
}

// The element would contribute twice to one reduction, and the result would lack another member.
TEST(Section, AContributorIsNotRemovedBeforeItIsCounted) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create_sparse(runtime, {1000});
    for (const int i : {3, 500}) co_await cells.insert(i);
    const auto section = some_of(cells, 3, 500);
    Future<int> sum(runtime);
    co_await cells[500].call<&Cell::give>(section, sum, 1);
    EXPECT_TRUE(says(co_await error_of(cells[500].remove()), "of elements that are not counted yet"));
    co_await cells.done_inserting();
    co_await cells[500].remove();
    co_await runtime.quiescence();
    EXPECT_FALSE(sum.is_ready());
    co_await cells[3].call<&Cell::give>(section, sum, 1);
    EXPECT_EQ(co_await sum, 2);
  });
}

// Before the first count, as a call to an element does.
TEST(Section, ACallWaitsForMembersThatAreNotInsertedYet) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create_sparse(runtime, {1000});
    const auto section = some_of(cells, 999, 3);
    auto indices = section.call<&Cell::where>();
    co_await runtime.quiescence();
    for (const int i : {3, 999}) co_await cells.insert(i);
    EXPECT_EQ(co_await indices, list_of<std::uint64_t>(999, 3));
  });
}

// --- Checkpoints

TEST(Section, IsSavedAndRestoredUnlessAReductionLacksContributions) {
  const testing::TemporaryFolder folder;
  run_on(3, "loopback", [&](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    const auto some = some_of(cells, 7, 1, 10, 2);
    Future<int> sum(runtime);
    some.slice(0, 3).send<&Cell::give>(some, sum, 1);
    const std::string error = co_await error_of(checkpoint(runtime, folder.path(), cells, some));
    EXPECT_TRUE(
        says(error, "some members of a section have contributed to a reduction that is not complete"));
    some[3].send<&Cell::give>(some, sum, 1);
    EXPECT_EQ(co_await sum, 4);
    co_await checkpoint(runtime, folder.path(), cells, some);
  });
  run_on(2, "loopback", [&](Runtime& runtime) -> Task<> {
    Array<Cell> cells;
    Section<Cell> some;
    co_await restore(runtime, folder.path(), cells, some);
    EXPECT_EQ(&some.collection(), &cells.collection());
    EXPECT_EQ(co_await some.call<&Cell::where>(), list_of<std::uint64_t>(7, 1, 10, 2));
    Future<int> sum(runtime);
    some.send<&Cell::give>(some, sum, 1);
    EXPECT_EQ(co_await sum, 4);
  });
}

}  // namespace
}  // namespace weft::chare::section_testing
