#include "models/pgas/copy/run.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/errors.h"

namespace weft::pgas {
namespace {

using test_support::says;
using test_support::thrown_by;
using Distances = std::vector<std::ptrdiff_t>;
using Sizes = std::vector<std::size_t>;

TEST(Run, RowsOfAMatrixAreOneRunEach) {
  const auto runs = runs_of(Distances{80, 8}, Distances{24, 8}, Sizes{4, 3}, 8);
  ASSERT_EQ(runs.size(), 4U) << "the elements of a row are joined";
  EXPECT_EQ(runs[3].from_bytes, 240);
  EXPECT_EQ(runs[3].to_bytes, 72);
  EXPECT_EQ(runs[3].size_bytes, 24U);
  EXPECT_EQ(total_bytes(runs), 96U);
  Rows rows;
  ASSERT_TRUE(are_rows(runs, rows));
  EXPECT_EQ(rows.row_bytes, 24U);
  EXPECT_EQ(rows.from_stride, 80);
  EXPECT_EQ(rows.to_stride, 24);
}

TEST(Run, DenseOnBothSidesIsOneRun) {
  EXPECT_EQ(runs_of(Distances{24, 8}, Distances{24, 8}, Sizes{4, 3}, 8).size(), 1U);
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

TEST(Run, ShapesThatDoNotFitAreRefused) {
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of(Distances{8}, Distances{8, 8}, Sizes{1}, 8); }), "2 strides"));
  EXPECT_TRUE(
      says(thrown_by([] { (void)runs_of(Distances{1, 1}, Distances{1, 1}, Sizes{1U << 20, 1U << 20}, 1); }),
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
  Rows rows;
  EXPECT_FALSE(are_rows(runs, rows));
}

TEST(Run, OverlapIsFoundInOneSegmentOnly) {
  const GlobalAddress at(0, 1, memory::Kind::kHost, 100);
  const std::array runs{pgas::Run{0, 0, 10}, pgas::Run{20, 20, 10}};
  EXPECT_TRUE(overlaps(runs, at, at));
  EXPECT_TRUE(overlaps(runs, at, at.moved_by(29)));
  EXPECT_TRUE(overlaps(runs, at, at.moved_by(-9)));
  EXPECT_FALSE(overlaps(runs, at, at.moved_by(10))) << "the runs interleave";
  EXPECT_FALSE(overlaps(runs, at, at.moved_by(30)));
  EXPECT_FALSE(overlaps(runs, at, GlobalAddress(0, 2, memory::Kind::kHost, 100)));
}

}  // namespace
}  // namespace weft::pgas
