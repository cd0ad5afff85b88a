#include "weft/chare/section.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/unit/chare/sections/section_cell.h"

namespace weft::chare::section_testing {
namespace {

using test_support::error_of;
using test_support::says;

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
    EXPECT_TRUE(says(co_await error_of(evens.call<&Cell::throw_from>(5)), "thrown by "));
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

}  // namespace
}  // namespace weft::chare::section_testing
