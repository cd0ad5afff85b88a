#include "weft/chare/section_members.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::says;

struct Site : Chare<Site> {
  void nothing() {}
};

// The text of the error that the function throws, or "".
template <class Function>
std::string error_in(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::uint64_t> all_of(const SectionMembers& members) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < members.size(); ++i) all.push_back(members.at(i));
  return all;
}

// Each member is found at its place, and nothing else is a member.
void expect_positions(const SectionMembers& members, std::uint64_t num_elements) {
  const std::vector<std::uint64_t> all = all_of(members);
  for (std::uint64_t linear = 0; linear < num_elements; ++linear) {
    const auto found = std::ranges::find(all, linear);
    const auto place = members.position(linear);
    ASSERT_EQ(place.has_value(), found != all.end()) << linear;
    EXPECT_EQ(place.value_or(0), place.has_value() ? static_cast<std::uint64_t>(found - all.begin()) : 0);
  }
  EXPECT_FALSE(members.position(num_elements).has_value());
  std::vector<std::uint64_t> by_index = all;
  std::ranges::sort(by_index);
  const std::vector<std::uint64_t> places = members.places_by_index();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[places.empty() ? i : places[i]], by_index[i]);
}

SectionMembers::Pointer travelled(Runtime& runtime, Collection& of, const SectionMembers::Pointer& members) {
  Section<Site> section(of, members);
  const auto bytes = base::pack(section, &runtime);
  auto arrived = base::unpack<Section<Site>>(bytes, &runtime);
  EXPECT_EQ(&arrived.collection(), &of);
  return arrived.shared_members();
}

void with_grid(void (*test)(Runtime& runtime, const Array<Site>& grid)) {
  testing::InProcessJob job(1, "loopback");
  EXPECT_EQ(job.run([test](Runtime& runtime) -> Task<> {
    const auto grid = Array<Site>::create(runtime, {4, 6});
    co_await grid.created();
    test(runtime, grid);
  }),
            "");
}

TEST(SectionMembers, RangesNameTheSameMembersAsAListAndAreTheSameSection) {
  with_grid([](Runtime& runtime, const Array<Site>& grid) {
    Collection& of = grid.collection();
    const std::vector<std::vector<Range>> choices = {
        {Range::one(0), Range::all()},
        {Range::all(), Range::one(5)},
        {Range::all(), Range::all()},
        {{0, 2, 2}, {5, 3, -2}},
        {{3, 4, -1}, {5, 6, -1}},
        {Range::between(1, 4), Range::between(0, 6, 4)},
        {Range::between(2, 2), Range::all()},
        {Range::one(3), Range::one(5)},
    };
    for (const auto& ranges : choices) {
      const auto members = SectionMembers::of_ranges(of, ranges);
      std::vector<std::uint64_t> expected;
      const auto coordinates = [&of](const Range& one, int d) {
        return one == Range::all() ? Range{0, of.shape().extent(d), 1} : one;
      };
      const Range rows = coordinates(ranges[0], 0);
      const Range columns = coordinates(ranges[1], 1);
      for (int i = 0; i < rows.count; ++i) {
        for (int j = 0; j < columns.count; ++j)
          expected.push_back(
              of.shape().linear({rows.first + i * rows.step, columns.first + j * columns.step}));
      }
      EXPECT_EQ(all_of(*members), expected);
      EXPECT_EQ(members->size(), expected.size());
      expect_positions(*members, 24);
      const auto list = SectionMembers::of_list(of, expected);
      expect_positions(*list, 24);
      EXPECT_EQ(list->id(), members->id());
      EXPECT_EQ(all_of(*travelled(runtime, of, members)), expected);
      EXPECT_EQ(all_of(*travelled(runtime, of, list)), expected);
    }
  });
}

TEST(SectionMembers, TheIdentityDependsOnTheMembersAndTheirOrder) {
  with_grid([](Runtime&, const Array<Site>& grid) {
    Collection& of = grid.collection();
    const auto id = [&of](std::vector<std::uint64_t> list) {
      return SectionMembers::of_list(of, std::move(list))->id();
    };
    EXPECT_EQ(id({1, 2, 3}), id({1, 2, 3}));
    EXPECT_FALSE(id({1, 2, 3}) == id({3, 2, 1}));
    EXPECT_FALSE(id({1, 2, 3}) == id({1, 2}));
    EXPECT_FALSE(id({}) == id({0}));
  });
}

TEST(SectionMembers, PartsAndSelectionsAreOfRangesWherePossibleAndKeepTheOrder) {
  with_grid([](Runtime&, const Array<Site>& grid) {
    Collection& of = grid.collection();
    for (const auto& whole :
         {SectionMembers::of_list(of, {9, 4, 17, 0, 23, 8, 1}),
          SectionMembers::of_ranges(of, std::vector<Range>{Range::one(2), Range::all()}),
          SectionMembers::of_ranges(of, std::vector<Range>{Range{3, 4, -1}, Range::one(1)}),
          SectionMembers::of_ranges(of, std::vector<Range>{Range::all(), Range::all()})}) {
      const auto all = all_of(*whole);
      for (const int parts : {1, 2, 3, 30}) {
        std::vector<std::uint64_t> joined;
        std::size_t least = all.size();
        std::size_t most = 0;
        for (const auto& part : whole->split(of, parts)) {
          const auto some = all_of(*part);
          joined.insert(joined.end(), some.begin(), some.end());
          least = std::min(least, some.size());
          most = std::max(most, some.size());
        }
        EXPECT_EQ(joined, all);
        EXPECT_LE(most - least, 1U);
      }
      EXPECT_EQ(all_of(*whole->select(of, 1, 2, 2)), (std::vector<std::uint64_t>{all[1], all[3]}));
      EXPECT_EQ(all_of(*whole->select(of, 3, 3, -1)), (std::vector<std::uint64_t>{all[3], all[2], all[1]}));
      expect_positions(*whole->select(of, 3, 3, -1), 24);
    }
    const SectionMembers::Pointer some[] = {SectionMembers::of_list(of, {5, 3}),
                                            SectionMembers::of_list(of, {3, 4, 5, 0})};
    EXPECT_EQ(all_of(*SectionMembers::combined(of, some)), (std::vector<std::uint64_t>{5, 3, 4, 0}));
  });
}

TEST(SectionMembers, RangesBetweenTwoCoordinatesMayTurnBack) {
  constexpr int kMost = std::numeric_limits<int>::max();
  constexpr int kLeast = std::numeric_limits<int>::min();
  const auto expect = [](Range range, int count, int last) {
    EXPECT_EQ(range.count, count);
    if (count == 0) return;
    EXPECT_EQ(range.first + std::int64_t{range.count - 1} * range.step, last);
  };
  expect(Range::between(0, 6, 4), 2, 4);
  expect(Range::between(0, 5, 4), 2, 4);
  expect(Range::between(0, 4, 4), 1, 0);
  expect(Range::between(5, 0, -1), 5, 1);
  expect(Range::between(5, 0, -2), 3, 1);
  expect(Range::between(5, -1, -5), 2, 0);
  expect(Range::between(0, 5, -1), 0, 0);
  expect(Range::between(5, 5), 0, 0);
  expect(Range::between(0, 3, kMost), 1, 0);
  expect(Range::between(3, 0, kLeast), 1, 3);
  expect(Range::between(kLeast, kMost, kMost), 3, kMost - 1);
  with_grid([](Runtime&, const Array<Site>& grid) {
    EXPECT_TRUE(
        says(error_in([&] { static_cast<void>(grid.slice({Range::all(), Range::between(0, 5, 0)})); }),
             "step of a section's range is 0"));
    EXPECT_NE(error_in([&] { static_cast<void>(grid.slice({Range::all(), Range::between(kLeast, kMost)})); }),
              "");
  });
}

TEST(SectionMembers, SlicesOfASectionTakeAnyStep) {
  with_grid([](Runtime&, const Array<Site>& grid) {
    const Section<Site> row = grid.slice({Range::one(1), Range::all()});
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(all_of(row.slice(0, 6, kMost).members()), (std::vector<std::uint64_t>{6}));
    EXPECT_EQ(all_of(row.slice(1, 6, 4).members()), (std::vector<std::uint64_t>{7, 11}));
    EXPECT_EQ(row.slice(6, 6, kMost).size(), 0U);
    EXPECT_TRUE(
        says(error_in([&] { static_cast<void>(row.slice(0, 6, 0)); }), "step of a section's slice is 0"));
    EXPECT_TRUE(says(error_in([&] { static_cast<void>(row.slice(3, 2)); }), "from 3 up to 2"));
    EXPECT_TRUE(says(error_in([&] { static_cast<void>(row.slice(0, 7)); }), "from 0 up to 7"));
  });
}

TEST(SectionMembers, ASectionOfNoCollectionSaysSo) {
  const Section<Site> none;
  EXPECT_EQ(none.size(), 0U);
  const auto expect = [](const auto& use) { EXPECT_TRUE(says(error_in(use), "a section of no collection")); };
  expect([&] { none.send<&Site::nothing>(); });
  expect([&] { static_cast<void>(none.call<&Site::nothing>()); });
  expect([&] { static_cast<void>(none.slice(0, 0)); });
  expect([&] { static_cast<void>(none.contains({0, 0})); });
  expect([&] { static_cast<void>(combine(none, none)); });
  expect([&] { static_cast<void>(none.collection()); });
}

TEST(SectionMembers, WrongMembersAreRefused) {
  with_grid([](Runtime& runtime, const Array<Site>& grid) {
    Collection& of = grid.collection();
    EXPECT_TRUE(says(error_in([&] { SectionMembers::of_list(of, {3, 1, 3}); }), "Site[0, 3] is in the list"));
    EXPECT_TRUE(says(error_in([&] { SectionMembers::of_list(of, {24}); }), "outside"));
    EXPECT_TRUE(says(error_in([&] { static_cast<void>(grid.section({{4, 0}})); }), "(4, 6)"));
    EXPECT_TRUE(
        says(error_in([&] { static_cast<void>(grid.slice({Range::all()})); }), "2 dimensions, not 1"));
    for (const Range& wrong : {Range{0, 7, 1}, Range{-1, 2, 1}, Range{2, 4, -1}, Range{6, 1, 1},
                               Range{0, 2, 0}, Range{0, -2, 1}, Range{5, 1'000'000'000, 2'000'000'000}}) {
      EXPECT_NE(error_in([&] { static_cast<void>(grid.slice({Range::all(), wrong})); }), "");
      // The same from a peer.
      Section<Site> whole = grid.slice({Range::all(), Range::all()});
      auto bytes = base::pack(whole, &runtime);
      std::memcpy(bytes.data() + bytes.size() - sizeof wrong, &wrong, sizeof wrong);
      EXPECT_TRUE(says(error_in([&] { base::unpack<Section<Site>>(bytes, &runtime); }), "ranges do not fit"));
    }
    for (const std::uint64_t wrong : {std::uint64_t{24}, ~std::uint64_t{0}, std::uint64_t{1}}) {
      auto bytes = base::pack(grid.section({{0, 1}, {0, 2}}), &runtime);
      std::memcpy(bytes.data() + bytes.size() - sizeof wrong, &wrong, sizeof wrong);
      EXPECT_TRUE(
          says(error_in([&] { base::unpack<Section<Site>>(bytes, &runtime); }), "members do not fit"));
    }
    EXPECT_TRUE(says(error_in([&] { grid.slice({Range::one(0), Range::all()}).split(0); }), "not 0"));
    EXPECT_TRUE(says(error_in([&] { static_cast<void>(grid.section({{0, 0}})[1]); }), "place 1"));
    const auto other = Array<Site>::create(runtime, {4, 6});
    EXPECT_TRUE(
        says(error_in([&] { static_cast<void>(combine(grid.section({{0, 0}}), other.section({{0, 0}}))); }),
             "two collections"));
    const auto sparse = Array<Site>::create_sparse(runtime, {4});
    EXPECT_TRUE(says(error_in([&] { static_cast<void>(sparse.slice({Range::all()})); }), "sparse array"));
    EXPECT_TRUE(
        says(error_in([&] { static_cast<void>(sparse.section_if([](const Index&) { return true; })); }),
             "by a function"));
  });
}

}  // namespace
}  // namespace weft::chare
