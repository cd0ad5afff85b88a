#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/file/coverage.h"
#include "models/mpi/file/file_view.h"
#include "models/mpi/file/part_access.h"

namespace weft::mpi {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

std::vector<Range> ranges_of(const Coverage& coverage, std::int64_t most_gap) {
  std::vector<Range> ranges;
  coverage.for_each_range(most_gap,
                          [&](std::int64_t begin, std::int64_t end) { ranges.emplace_back(begin, end); });
  return ranges;
}

TEST(FileCoverage, HasTheRangesThatAreMarked) {
  Coverage coverage(300);
  EXPECT_EQ(ranges_of(coverage, 0), std::vector<Range>());
  coverage.mark(0, 1);
  coverage.mark(63, 65);
  coverage.mark(100, 260);
  coverage.mark(110, 120);
  coverage.mark(299, 300);
  EXPECT_EQ(ranges_of(coverage, 0), (std::vector<Range>{{0, 1}, {63, 65}, {100, 260}, {299, 300}}));
  EXPECT_EQ(ranges_of(coverage, 38), (std::vector<Range>{{0, 1}, {63, 260}, {299, 300}}))
      << "gaps of 35 bytes";
  EXPECT_EQ(ranges_of(coverage, 300), (std::vector<Range>{{0, 300}}));
}

TEST(FileCoverage, EndsWithinAWord) {
  Coverage coverage(70);
  coverage.mark(0, 70);
  EXPECT_EQ(ranges_of(coverage, 0), (std::vector<Range>{{0, 70}}));
}

const Part kPart{100, 200};

void expect_refused(const std::vector<WindowRun>& runs, std::uint64_t size_bytes) {
  const PartAccess access{{runs.size(), size_bytes}, runs, 0};
  try {
    check_header(3, access.header, kPart);
    check_part_runs(3, access, kPart);
    FAIL() << "the access was accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::StatusCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("rank 3"), std::string::npos);
  }
}

TEST(FilePartAccess, RunsInThePartAreAccepted) {
  const std::vector<WindowRun> runs{{100, 8, 2, 16}, {124, 1, 1, 0}, {190, 10, 1, 0}};
  const PartAccess access{{3, 27}, runs, 0};
  check_header(3, access.header, kPart);
  check_part_runs(3, access, kPart);
  check_header(3, {}, kPart);
}

TEST(FilePartAccess, WhatCannotBeIsRefused) {
  expect_refused({{99, 8, 1, 0}}, 8);                     // before the part
  expect_refused({{193, 8, 1, 0}}, 8);                    // ends behind it
  expect_refused({{100, 8, 7, 16}, {200, 1, 1, 0}}, 57);  // begins behind it
  expect_refused({{100, 8, 7, 16}}, 57);                  // another size
  expect_refused({{100, 8, 1, 0}, {104, 8, 1, 0}}, 16);   // overlap
  expect_refused({{150, 8, 1, 0}, {100, 8, 1, 0}}, 16);   // not in order
  expect_refused({{100, 8, 2, 4}}, 16);                   // a run that overlaps itself
  expect_refused({{180, 8, 2, -16}}, 16);                 // backwards
  expect_refused({{100, 8, 0, 16}}, 8);                   // no pieces
  expect_refused({{100, 0, 8, 16}}, 8);                   // no bytes
  expect_refused({{100, 8, UINT64_MAX / 8, 16}}, 8);      // numbers that overflow
  expect_refused({{100, UINT64_MAX, 1, 0}}, 8);
  expect_refused({{100, 8, 2, INT64_MAX}}, 16);
  expect_refused({}, 8);                                                    // bytes without runs
  expect_refused({{100, 50, 1, 0}, {150, 50, 1, 0}, {200, 1, 1, 0}}, 101);  // more bytes than the part has
}

class FileViewTest : public ::testing::Test {
 protected:
  std::shared_ptr<const FileView> view(MPI_Offset displacement, const Ref<Datatype>& filetype) {
    std::shared_ptr<const FileView> made;
    const Representations representations;
    const Error error = FileView::make(
        {displacement, Ref<Datatype>(*types_.find(MPI_BYTE)), filetype, representations.find("native")}, true,
        types_, &made);
    EXPECT_TRUE(error.ok()) << error.text;
    return made;
  }
  // `count` bytes, `stride` from one to the next, in a tile of `extent`.
  Ref<Datatype> strided(MPI_Count count, MPI_Count stride, MPI_Count extent) {
    Ref<Datatype> vector;
    Ref<Datatype> resized;
    EXPECT_TRUE(make_vector({count, 1, stride}, *types_.find(MPI_BYTE), CallForm::kLarge, &vector).ok());
    EXPECT_TRUE(make_resized(0, extent, *vector, CallForm::kLarge, &resized).ok());
    return resized;
  }

  PredefinedTypes types_;
};

TEST_F(FileViewTest, ManyPiecesAreOneRun) {
  // 10^12 bytes at every second place: no list of them is made.
  const auto huge = view(10, strided(1'000'000'000'000, 2, 2'000'000'000'000));
  EXPECT_EQ(huge->offset_of(123'456'789), 10 + 2 * 123'456'789LL);
  EXPECT_EQ(huge->bytes_before(10 + 2 * 123'456'789LL), 123'456'789);
  EXPECT_TRUE(huge->is_monotonic());
  EXPECT_FALSE(huge->fits(0, INT64_MAX));
  int num_runs = 0;
  huge->for_each_run(5, 1005, [&](const FileRun& run) {
    ++num_runs;
    EXPECT_EQ(run.offset, 20);
    EXPECT_EQ(run.count, 1000);
    EXPECT_EQ(run.stride, 2);
  });
  EXPECT_EQ(num_runs, 1);
}

TEST_F(FileViewTest, CopiesOfTheFiletypeAreOneRunToo) {
  const auto sparse = view(0, strided(1, 1, 32));
  int num_runs = 0;
  sparse->for_each_run(2, 102, [&](const FileRun& run) {
    ++num_runs;
    EXPECT_EQ(run.offset, 64);
    EXPECT_EQ(run.count, 100);
    EXPECT_EQ(run.stride, 32);
  });
  EXPECT_EQ(num_runs, 1);
}

TEST_F(FileViewTest, FewBytesOfALargeFiletypeHaveFewPieces) {
  const auto large = view(0, strided(1'000'000, 1000, 1'000'000'000));
  EXPECT_EQ(large->num_pieces(0), 0);
  EXPECT_EQ(large->num_pieces(10), 11);
  EXPECT_EQ(large->num_pieces(2'000'000), 2'000'001);
  EXPECT_EQ(view(5, strided(1, 1, 1))->num_pieces(1'000'000), 1);
}

TEST_F(FileViewTest, CopiesThatLieInEachOthersGapsAreNotMonotonic) {
  const auto columns = view(0, strided(3, 4, 1));
  EXPECT_FALSE(columns->is_monotonic());
  EXPECT_EQ(columns->offset_of(4), 5);
}

}  // namespace
}  // namespace weft::mpi
