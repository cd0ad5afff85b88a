#include "rma/copy/run.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include "tests/support/errors.h"

namespace weft::rma {
namespace {

using test_support::says;
using test_support::thrown_by;
using Distances = std::vector<std::ptrdiff_t>;
using Sizes = std::vector<std::size_t>;
using Runs = std::vector<Run>;  // in a test, Run is a member of it
using RunSpan = std::span<const Run>;

TEST(Run, RowsOfAMatrixAreOneRunEach) {
  const auto runs = runs_of(Distances{80, 8}, Distances{24, 8}, Sizes{4, 3}, 8);
  ASSERT_EQ(runs.size(), 4U) << "the elements of a row are joined";
  EXPECT_EQ(runs[3].from_bytes, 240);
  EXPECT_EQ(runs[3].to_bytes, 72);
  EXPECT_EQ(runs[3].size_bytes, 24U);
  EXPECT_EQ(total_bytes(runs), 96U);
  const auto groups = row_groups(runs);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].count, 4U);
  EXPECT_EQ(groups[0].from_stride, 80);
  EXPECT_EQ(groups[0].to_stride, 24);
  EXPECT_EQ(unpacking_runs(runs).size(), 1U) << "the target is dense";
  const auto packing = packing_runs(runs);
  ASSERT_EQ(packing.size(), 4U);
  EXPECT_EQ(packing[3].from_bytes, 240);
  EXPECT_EQ(packing[3].to_bytes, 72);
}

TEST(Run, PlanesAreAGroupOfRowsEach) {
  const auto runs = runs_of(Distances{1000, 80, 8}, Distances{600, 40, 8}, Sizes{3, 4, 2}, 8);
  ASSERT_EQ(runs.size(), 12U);
  std::size_t in_groups = 0;
  for (const RowGroup& group : row_groups(runs)) {
    for (std::size_t i = 0; i < group.count; ++i) {
      const auto row = static_cast<std::int64_t>(i);
      EXPECT_EQ(runs[group.first + i].from_bytes, runs[group.first].from_bytes + row * group.from_stride);
      EXPECT_EQ(runs[group.first + i].to_bytes, runs[group.first].to_bytes + row * group.to_stride);
    }
    in_groups += group.count;
  }
  EXPECT_EQ(in_groups, 12U);
  EXPECT_LE(row_groups(runs).size(), 5U);
}

TEST(Run, DenseOnBothSidesIsOneRun) {
  EXPECT_EQ(runs_of(Distances{24, 8}, Distances{24, 8}, Sizes{4, 3}, 8).size(), 1U);
}

TEST(Run, DenseDimensionsInsideAreOneBlock) {
  // 2^40 elements, of which no list is made.
  const auto runs = runs_of(Distances{std::ptrdiff_t{1} << 40, 1 << 10, 1}, Distances{-1, 1 << 10, 1},
                            Sizes{1, 1 << 30, 1 << 10}, 1);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].size_bytes, std::uint64_t{1} << 40);
  EXPECT_TRUE(says(thrown_by([] {
                     const Distances strides{std::ptrdiff_t{1} << 40, 1};
                     (void)runs_of(strides, strides, Sizes{1U << 20, std::size_t{1} << 40}, 1);
                   }),
                   "every segment"));
}

TEST(Run, TheReachIsFromTheFirstToTheLastByte) {
  const Reach reach = reach_of(Distances{-100, 8, 0}, Sizes{3, 5, 7}, 8);
  EXPECT_EQ(reach.first_bytes, -200);
  EXPECT_EQ(reach.size_bytes, 200U + 32 + 8);
  EXPECT_EQ(reach_of(Distances{}, Sizes{}, 8).size_bytes, 8U);
  EXPECT_EQ(reach_of(Distances{8, 8}, Sizes{3, 0}, 8).size_bytes, 0U);
  EXPECT_TRUE(says(thrown_by([] { (void)reach_of(Distances{PTRDIFF_MAX}, Sizes{3}, 8); }), "address space"));
  EXPECT_TRUE(says(thrown_by([] { (void)reach_of(Distances{1, 1}, Sizes{PTRDIFF_MAX, PTRDIFF_MAX}, 8); }),
                   "address space"));
}

TEST(Run, StridesMayBeNegative) {
  const auto runs = runs_of(Distances{-8}, Distances{8}, Sizes{3}, 8);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[2].from_bytes, -16);
  EXPECT_EQ(runs[2].to_bytes, 16);
}

TEST(Run, NoDimensionsAreOneElement) {
  const auto runs = runs_of(Distances{}, Distances{}, Sizes{}, 4);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].size_bytes, 4U);
}

TEST(Run, AnEmptyExtentHasNoRuns) {
  EXPECT_TRUE(runs_of(Distances{8, 8}, Distances{8, 8}, Sizes{3, 0}, 8).empty());
  EXPECT_TRUE(runs_of_indices(Distances{1}, Distances{1}, 8, 0).empty());
}

TEST(Run, ElementsWithoutBytesHaveNoRuns) {
  EXPECT_TRUE(runs_of_indices(Distances{1, 5}, Distances{3, 9}, 0, 2).empty());
  EXPECT_TRUE(runs_of_indices(Distances{1}, Distances{1}, 0, 0).empty());
  EXPECT_EQ(total_bytes(runs_of(Distances{8}, Distances{16}, Sizes{3}, 0)), 0U);
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of_indices(Distances{1, 5}, Distances{3}, 0, 1); }), "2 indices"));
}

TEST(Run, ShapesThatDoNotFitAreRefused) {
  EXPECT_TRUE(says(thrown_by([] {
                     const Distances strides(9, 8);
                     (void)runs_of(strides, strides, Sizes(9, 1), 8);
                   }),
                   "9 dimensions"));
  EXPECT_TRUE(says(thrown_by([] {
                     const std::size_t block = std::size_t{1} << 60;
                     const Distances indices{0, -(std::ptrdiff_t{1} << 60)};
                     (void)runs_of_indices(indices, indices, 8, block);
                   }),
                   "larger than every segment"));
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of(Distances{8}, Distances{8, 8}, Sizes{1}, 8); }), "2 strides"));
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of(Distances{2, 2}, Distances{2, 2}, Sizes{1U << 20, 1U << 20}, 1); }),
           "2^28"));
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of_indices(Distances{1}, Distances{}, 8, 1); }), "0 of the target"));
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of_indices(Distances{PTRDIFF_MAX}, Distances{0}, 8, 1); }), "outside"));
}

TEST(Run, IndicesAreScaled) {
  const auto runs = runs_of_indices(Distances{0, 5, 7}, Distances{9, 1, 3}, 4, 2);
  ASSERT_EQ(runs.size(), 2U) << "the last two blocks adjoin";
  EXPECT_EQ(runs[1].from_bytes, 20);
  EXPECT_EQ(runs[1].to_bytes, 4);
  EXPECT_EQ(runs[1].size_bytes, 16U);
  EXPECT_EQ(row_groups(runs).size(), 2U) << "their sizes differ";
}

TEST(Run, TheTotalDoesNotWrap) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  EXPECT_EQ(total_bytes(Runs{{0, 0, kHalf}, {0, 0, kHalf - 1}}), ~std::uint64_t{0});
  EXPECT_EQ(total_bytes(Runs{{0, 0, kHalf}, {0, 0, kHalf}, {0, 0, 5}}), ~std::uint64_t{0});
}

TEST(Run, JoinedRunsAreCountedAtEachEnd) {
  const Runs runs{{0, 0, 4}, {8, 4, 4}, {16, 8, 4}, {20, 100, 4}, {24, 104, 4}};
  EXPECT_EQ(num_joined(runs, End::kTarget), 2U);
  EXPECT_EQ(num_joined(runs, End::kTarget), unpacking_runs(runs).size());
  EXPECT_EQ(num_joined(runs, End::kSource), 3U);
  EXPECT_EQ(num_joined(runs, End::kSource), packing_runs(runs).size());
  EXPECT_EQ(num_joined({}, End::kSource), 0U);
}

TEST(Run, PiecesAreOfAsManyBytesOrOneRun) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const Runs runs{{0, 0, kAtOnceBytes - 1},
                  {0, 0, 1},
                  {0, 0, 1},
                  {0, 0, kAtOnceBytes + 1},
                  {0, 0, kHuge},
                  {0, 0, kHuge},
                  {0, 0, 3}};
  std::vector<std::size_t> sizes;
  for (RunSpan left = runs; !left.empty();) {
    const auto* const first = left.data();
    const RunSpan piece = take_piece(left);
    EXPECT_EQ(piece.data(), first);
    sizes.push_back(piece.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 1, 1, 1, 1, 1}));
}

TEST(Run, OverlapIsOfOneSpace) {
  std::vector<ByteRange> ranges{{1, 0, 10, false}, {2, 5, 15, true}, {1, 10, 20, true}, {2, 15, 16, false}};
  EXPECT_FALSE(have_overlap(ranges));
  ranges.push_back({2, 9, 9, false});
  EXPECT_FALSE(have_overlap(ranges)) << "no bytes";
  ranges.push_back({2, 14, 15, false});
  EXPECT_TRUE(have_overlap(ranges));
}

TEST(Run, OverlapIsFound) {
  const std::array runs{rma::Run{0, 0, 10}, rma::Run{20, 20, 10}};
  EXPECT_TRUE(overlaps(runs, 100, 100));
  EXPECT_TRUE(overlaps(runs, 100, 129));
  EXPECT_TRUE(overlaps(runs, 100, 91));
  EXPECT_FALSE(overlaps(runs, 100, 110)) << "the runs interleave";
  EXPECT_FALSE(overlaps(runs, 100, 130));
  const std::array one{rma::Run{0, 8, 16}};
  EXPECT_TRUE(overlaps(one, 100, 100));
  EXPECT_FALSE(overlaps(one, 100, 108));
  EXPECT_FALSE(overlaps(one, 100, 76));
}

}  // namespace
}  // namespace weft::rma
