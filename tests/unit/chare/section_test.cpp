#include "weft/chare/section.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "models/chare/parts.h"
#include "models/chare/sections/section_state.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

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

void run_on(int num_pes, const char* machine, const std::function<Task<>(Runtime&)>& main) {
  SCOPED_TRACE(std::string(machine) + ", PEs: " + std::to_string(num_pes));
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run(main), "");
}

void run_everywhere(const std::function<Task<>(Runtime&)>& main) {
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
Section<Cell> none_of(const CollectionProxy<Cell>& cells) { return cells.section(std::vector<Index>()); }
Section<Cell> one_of(const CollectionProxy<Cell>& cells, int i, int j) { return cells.section({{i, j}}); }

std::vector<std::uint64_t> members_of(const Section<Cell>& section) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < section.size(); ++i) all.push_back(section[i].linear_index());
  return all;
}

TEST(Section, EachMemberGetsACallAndNoOtherElementDoes) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto grid = Array<Cell>::create(runtime, {4, 6});  // the calls may arrive before the elements exist
    const auto row = grid.slice({Range::one(1), Range::all()});
    const auto column = grid.slice({Range::all(), Range::one(2)});
    const auto some = grid.section({{3, 5}, {0, 0}, {1, 2}});
    const auto fives = grid.section_if([](const Index& i) { return (i[0] * 6 + i[1]) % 5 == 0; });
    row.send<&Cell::add>(1);
    column.send<&Cell::add>(10);
    some.send<&Cell::add>(100);
    fives.send<&Cell::add>(1000);
    grid.section({{2, 2}}).send<&Cell::add>(10'000);
    co_await runtime.quiescence();
    const std::vector<int> found = co_await grid.call<&Cell::get>();
    for (int i = 0; i < 24; ++i) {
      const int expected = (i / 6 == 1 ? 1 : 0) + (i % 6 == 2 ? 10 : 0) +
                           (i == 23 || i == 0 || i == 8 ? 100 : 0) + (i % 5 == 0 ? 1000 : 0) +
                           (i == 14 ? 10'000 : 0);
      EXPECT_EQ(found[static_cast<std::size_t>(i)], expected) << i;
    }
  });
}

TEST(Section, ResultsComeInTheOrderOfTheSection) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto grid = Array<Cell>::create(runtime, {4, 6});
    const auto back = grid.slice({Range{3, 4, -1}, Range{5, 3, -2}});
    EXPECT_EQ(co_await back.call<&Cell::where>(), members_of(back));
    const auto some = grid.section({{3, 5}, {0, 0}, {1, 2}, {1, 1}});
    EXPECT_EQ(co_await some.call<&Cell::where>(), list_of<std::uint64_t>(23, 0, 8, 7));
    EXPECT_EQ(co_await some.call<&Cell::where_later>(), list_of<std::uint64_t>(23, 0, 8, 7));
    co_await some.call<&Cell::add>(1);
    EXPECT_EQ(co_await some.call<&Cell::get>(), list_of<int>(1, 1, 1, 1));
    EXPECT_EQ(co_await one_of(grid, 2, 0).call<&Cell::where>(), list_of<std::uint64_t>(12));
    EXPECT_EQ(co_await none_of(grid).call<&Cell::where>(), std::vector<std::uint64_t>());
    // Parts, selections and unions.
    const auto halves = some.split(2);
    EXPECT_EQ(co_await halves[1].call<&Cell::where>(), list_of<std::uint64_t>(8, 7));
    EXPECT_EQ(co_await combine(halves[1], one_of(grid, 0, 1), some).call<&Cell::where>(),
              list_of<std::uint64_t>(8, 7, 1, 23, 0));
    EXPECT_EQ(co_await back.slice(1, 5, 2).call<&Cell::where>(),
              list_of<std::uint64_t>(back[1].linear_index(), back[3].linear_index()));
    EXPECT_EQ(co_await some.section_if([](const Index& i) { return i[0] == 1; }).call<&Cell::where>(),
              list_of<std::uint64_t>(8, 7));
  });
}

TEST(Section, LargeArgumentsAndPayloadsReachEachMember) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    const auto evens = cells.slice({Range{0, 6, 2}});
    for (const std::size_t size : {std::size_t{3}, std::size_t{20'000}, std::size_t{300'000}}) {
      std::vector<double> values(size, 2);
      const double sum = 2.0 * static_cast<double>(size);
      std::vector<double> expected;
      for (int i = 0; i < 12; i += 2) expected.push_back(sum + i);
      EXPECT_EQ(co_await evens.call<&Cell::add_up>(values), expected);
      EXPECT_EQ(co_await evens.call<&Cell::add_up_in_place>(nocopy(values)), expected);
      EXPECT_EQ(co_await some_of(cells, 7).call<&Cell::add_up_in_place>(nocopy(values)),
                list_of<double>(sum + 7));
      co_await evens.send<&Cell::add_up_in_place>(nocopy(values));
      // No member: the memory is free at once.
      co_await none_of(cells).send<&Cell::add_up_in_place>(nocopy(values));
      EXPECT_EQ((co_await none_of(cells).call<&Cell::add_up_in_place>(nocopy(values))).size(), 0U);
    }
    // To elements that have left the PE on which they are believed to be.
    std::vector<double> values(20'000, 1);
    co_await runtime.quiescence();  // an element in whose memory a call lands does not move
    for (int i = 0; i < 12; i += 4) cells[i].send<&Cell::go>(runtime.num_pes() - 1 - i % runtime.num_pes());
    EXPECT_EQ((co_await evens.call<&Cell::add_up>(values))[2], 20'004);
    EXPECT_EQ((co_await evens.call<&Cell::add_up_in_place>(nocopy(values)))[2], 20'004);
  });
}

TEST(Section, AnExceptionOfAMemberIsThatOfTheCall) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    const auto evens = cells.slice({Range{0, 6, 2}});
    EXPECT_TRUE(says(co_await error_of(evens.call<&Cell::throw_from>(5)), "thrown by 6"));
    EXPECT_EQ(co_await error_of(evens.call<&Cell::throw_from>(11)), "");
  });
}

TEST(Section, TravelsAsAnArgument) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {6});
    const auto some = some_of(cells, 4, 1);
    const auto described = co_await cells.call<&Cell::describe>(some);
    EXPECT_EQ(described[4], "4 in 2");
    EXPECT_EQ(described[3], "3 not in 2");
    const auto back = cells.slice({Range{5, 3, -1}});
    EXPECT_EQ((co_await some.call<&Cell::describe>(back))[0], "4 in 3");
  });
}

TEST(Section, ReductionsOverASectionEnd) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    const auto some = some_of(cells, 7, 1, 10, 2);
    Future<std::vector<std::uint64_t>> gathered(runtime);
    some.send<&Cell::give_index>(some, gathered);
    EXPECT_EQ(co_await gathered, list_of<std::uint64_t>(7, 1, 10, 2));
    Future<std::vector<int>> joined(runtime);
    some.send<&Cell::give_list>(some, joined);
    EXPECT_EQ(co_await joined, list_of<int>(7, 1, 10, 2, 2));
    Future<int> largest(runtime);
    some.send<&Cell::give_own>(some, largest);
    EXPECT_EQ(co_await largest, 10);
    Future<> all(runtime);
    some.send<&Cell::arrive>(some, all);
    co_await all;
    // Those of the collection, and of other sections, do not count.
    Future<int> one(runtime);
    const auto others = some_of(cells, 7, 1);
    others.send<&Cell::give>(others, one, 1);
    EXPECT_EQ(co_await one, 2);
  });
}

TEST(Section, EqualSectionsAreTheSameWhereverTheyAreMade) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto grid = Array<Cell>::create(runtime, {3, 5});
    for (int round = 0; round < 3; ++round) {
      for (int row = 0; row < 3; ++row) {
        Future<int> sum(runtime);
        const auto members = grid.section_if([row](const Index& i) { return i[0] == row; });
        members.send<&Cell::give_to_row>(sum);
        EXPECT_EQ(co_await sum, 10);
      }
    }
  });
}

TEST(Section, EqualMembersOfTwoCollectionsAreTwoSections) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto first = Array<Cell>::create(runtime, {6});
    const auto second = Array<Cell>::create(runtime, {6});
    Future<int> of_first(runtime);
    Future<int> of_second(runtime);
    some_of(first, 1).send<&Cell::give>(some_of(first, 1, 4), of_first, 1);
    some_of(second, 1).send<&Cell::give>(some_of(second, 1, 4), of_second, 1);
    co_await runtime.quiescence();
    EXPECT_FALSE(of_first.is_ready() || of_second.is_ready());
    some_of(first, 4).send<&Cell::give>(some_of(first, 1, 4), of_first, 1);
    EXPECT_EQ(co_await of_first, 2);
    EXPECT_FALSE(of_second.is_ready());
    some_of(second, 4).send<&Cell::give>(some_of(second, 1, 4), of_second, 1);
    EXPECT_EQ(co_await of_second, 2);
  });
}

// Otherwise a reduction takes time that grows with the square of the section.
TEST(Section, UnpackedAgainItIsOneObjectWithOneIdentity) {
  run_on(1, "loopback", [](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {50});
    for (const auto& section : {cells.slice({Range{1, 20, 2}}), some_of(cells, 3, 7, 1), none_of(cells)}) {
      const auto bytes = base::pack(std::pair(section, 17), &runtime);
      const auto [first, after_first] = base::unpack<std::pair<Section<Cell>, int>>(bytes, &runtime);
      const auto [second, after_second] = base::unpack<std::pair<Section<Cell>, int>>(bytes, &runtime);
      EXPECT_EQ(&first.members(), &second.members());
      EXPECT_EQ(members_of(second), members_of(section));
      EXPECT_EQ(after_first, 17);
      EXPECT_EQ(after_second, 17);
    }
    // Sections that begin alike are not the same.
    const auto shorter = base::unpack<Section<Cell>>(base::pack(some_of(cells, 3, 7), &runtime), &runtime);
    EXPECT_EQ(members_of(shorter), list_of<std::uint64_t>(3, 7));
    const auto others = Array<Cell>::create(runtime, {50});
    const auto other = base::unpack<Section<Cell>>(base::pack(some_of(others, 3, 7, 1), &runtime), &runtime);
    EXPECT_EQ(&other.collection(), &others.collection());
    co_await cells.created();
    co_await others.created();
  });
}

TEST(Section, SeveralReductionsMayBeInFlight) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {9});
    const auto some = cells.slice({Range{0, 5, 2}});
    std::vector<Future<int>> sums;
    for (int i = 0; i < 40; ++i) {
      sums.emplace_back(runtime);
      // Each call in another order of the members: the n-th contribution of each belongs to the n-th reduction.
      for (std::uint64_t k = 0; k < some.size(); ++k)
        some[(k + static_cast<std::uint64_t>(i)) % some.size()].send<&Cell::give>(some, sums.back(), 1);
    }
    // Calls may overtake one another, so only the number of results is certain: each is of five contributions.
    for (auto& sum : sums) EXPECT_EQ(co_await sum, 5);
  });
}

// The n-th contribution of each member belongs to the n-th reduction, in whatever order parts arrive.
TEST(Section, ContributionsOfOneTurnBelongToReductionsInTheirOrder) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {9});
    const auto some = some_of(cells, 8, 0, 4, 2);
    for (int round = 0; round < 5; ++round) {
      std::vector<Future<int>> sums;
      for (int i = 0; i < 20; ++i) sums.emplace_back(runtime);
      some[static_cast<std::uint64_t>(round % 4)].send<&Cell::go>(round % runtime.num_pes());
      some.send<&Cell::give_each>(some, sums);
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(co_await sums[static_cast<std::size_t>(i)], 4 * 100 * i + 14 + 4);
    }
  });
}

TEST(Section, MethodsOfASectionAndOfAllAreTargets) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {8});
    const auto low = cells.slice({Range{0, 4, 1}});
    const auto high = some_of(cells, 7, 4);
    low.send<&Cell::give_to_section>(low, high);
    cells.send<&Cell::give_all>(low);
    high.send<&Cell::give_to_all>(high);
    co_await runtime.quiescence();
    for (const auto& [section, what, sum] : {std::tuple(low, 9, 8), std::tuple(high, 7, 4)}) {
      for (auto results : co_await section.call<&Cell::taken>()) {
        std::ranges::sort(results);
        EXPECT_EQ(results.size(), 2U);
        EXPECT_EQ(std::ranges::count(results, std::pair(what, sum)), 1);
        EXPECT_EQ(std::ranges::count(results, std::pair(8, 2)), 1);
      }
    }
  });
}

TEST(Section, AContributionOfAnElementThatIsNoMemberIsRefused) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {6});
    const auto others = Array<Cell>::create(runtime, {6});
    Future<> all(runtime);
    EXPECT_TRUE(
        says(co_await error_of(cells[3].call<&Cell::arrive>(some_of(cells, 1, 2), all)), "Cell[3] on PE"));
    EXPECT_TRUE(says(co_await error_of(cells[3].call<&Cell::arrive>(some_of(others, 3), all)), "no member"));
    co_await cells[3].call<&Cell::arrive>(some_of(cells, 3), all);
    co_await all;
  });
}

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

// --- Claims of a peer

runtime::HandlerId handler_of(Runtime& runtime, ChareHandler which) {
  return static_cast<runtime::HandlerId>(runtime.model<Chares>().entry_handler() - kEntry + which);
}

// Sends a message to PE 1, which counts or which has the members.
std::string failure_of(const std::function<runtime::MessagePtr(Runtime&, const Array<Cell>&)>& make) {
  testing::InProcessJob job(2, "loopback");
  return job.run([&](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    co_await cells.created();
    runtime.send(1, make(runtime, cells));
    co_await runtime.quiescence();
    co_await runtime.sleep(0);
  });
}

TEST(Section, PartsOfReductionsThatDoNotFitEndTheJobWithASentence) {
  for (int wrong = 0; wrong < 8; ++wrong) {
    SCOPED_TRACE(wrong);
    const std::string failure = failure_of([wrong](Runtime& runtime, const Array<Cell>& cells) {
      const std::uint64_t collection = wrong == 0 ? std::uint64_t{2} << 32 : cells.collection().id();
      SectionPart part{{collection, {7, 1 - collection}, 0}, 4, 0, {}};  // PE 1 counts
      runtime::Partial partial;
      const int one = 1;
      Future<int> target(runtime);
      partial.add_contribution(runtime, 0, Reducer::kSum, runtime::value_combiner<int>(Reducer::kSum),
                               runtime::pack_contribution(one, Reducer::kSum, runtime), target_of(target));
      if (wrong == 1) part.key.set = ~std::uint32_t{0};
      if (wrong == 2) part.key.section.low += 1;  // PE 0 counts
      if (wrong == 3) partial.has_target = false;
      if (wrong == 4) partial.count = 0;
      if (wrong == 5) partial.count = 5;
      if (wrong == 6) part.num_members = 0;
      if (wrong == 7) return runtime::Message::pack(runtime, handler_of(runtime, kSectionPart), part);
      return runtime::Message::pack(runtime, handler_of(runtime, kSectionPart), part, partial);
    });
    EXPECT_TRUE(says(failure, wrong == 7 ? "ends too early" : "does not fit"));
  }
}

TEST(Section, TargetsThatDoNotFitEndTheJobWithASentence) {
  for (int wrong = 0; wrong < 3; ++wrong) {
    SCOPED_TRACE(wrong);
    const std::string failure = failure_of([wrong](Runtime& runtime, const Array<Cell>& cells) {
      EntryHeader header{cells.collection().id(), 0, EntryMethod<Cell, &Cell::take>::info().id, 0, {}};
      if (wrong == 0) header.reply = {ReplyTo::Kind::kFuture, 0, 1};
      // A list of members, one of which does not exist, and one without an end.
      const std::vector<std::uint64_t> members = {7, wrong == 1 ? std::uint64_t{12} : std::uint64_t{8}};
      if (wrong == 2)
        return runtime::Message::pack(runtime, handler_of(runtime, kSectionTarget), header, true,
                                      ~std::uint64_t{0});
      return runtime::Message::pack(runtime, handler_of(runtime, kSectionTarget), header, true, members, 7,
                                    8);
    });
    EXPECT_NE(failure, "");
    EXPECT_TRUE(says(failure, wrong == 0 ? "does not fit" : "a message")) << failure;
  }
}

// The PE of the members has heard of the end, the caller has not.
TEST(Section, ACallThatOvertakesTheEndAtItsCallerIsRefused) {
  testing::InProcessJob job(2, "loopback");
  const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    const auto cells = Array<Cell>::create(runtime, {12});
    co_await cells.destroy();
    const EntryHeader header{cells.collection().id(), 2, EntryMethod<Cell, &Cell::get>::info().id, 0, {}};
    const std::uint64_t members[4] = {7, 0, 8, 0};
    auto message =
        runtime::Message::create(runtime, handler_of(runtime, kSectionCall), sizeof header + sizeof members);
    std::memcpy(message->payload(), &header, sizeof header);
    std::memcpy(message->payload() + sizeof header, members, sizeof members);
    runtime.send(1, std::move(message));
    co_await runtime.quiescence();
    co_await runtime.sleep(0);
  });
  EXPECT_TRUE(says(failure, "comes too late")) << failure;
}

TEST(Section, MessagesThatDoNotFitEndTheJobWithASentence) {
  const std::uint64_t kWrong = ~std::uint64_t{0};
  for (int wrong = 0; wrong < 5; ++wrong) {
    SCOPED_TRACE(wrong);
    testing::InProcessJob job(2, "loopback");
    const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
      const auto cells = Array<Cell>::create(runtime, {12});
      co_await cells.created();
      const runtime::HandlerId handler = handler_of(runtime, kSectionCall);
      EntryHeader header{cells.collection().id(), 2, EntryMethod<Cell, &Cell::get>::info().id, 0, {}};
      std::uint64_t members[4] = {7, 0, 8, 0};
      if (wrong == 0) header.index = 0;
      if (wrong == 1) header.index = 3;
      if (wrong == 2) header.index = kWrong;
      if (wrong == 3) members[2] = 12;
      if (wrong == 4) header.entry = 1'000'000;
      auto message = runtime::Message::create(runtime, handler, sizeof header + sizeof members);
      std::memcpy(message->payload(), &header, sizeof header);
      std::memcpy(message->payload() + sizeof header, members, sizeof members);
      runtime.send(1, std::move(message));
      co_await runtime.quiescence();
      co_await runtime.sleep(0);
    });
    EXPECT_TRUE(says(failure, "does not fit that collection"));
  }
}

}  // namespace
}  // namespace weft::chare
