// Accesses whose target memory has more runs than a request may name.
#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include "models/mpi/window/access_parts.h"
#include "models/mpi/window/target_runs.h"

namespace weft::mpi {
namespace {

std::vector<std::size_t> num_runs_of(const std::vector<RunPart>& parts) {
  std::vector<std::size_t> numbers;
  for (const RunPart& part : parts) numbers.push_back(part.num_runs);
  return numbers;
}

TEST(WindowParts, HaveTheirBytesAndAtMostSoManyRuns) {
  const std::vector<WindowRun> runs{{0, 8, 2, 16}, {100, 4, 1, 0}, {50, 1, 3, 2}, {7, 5, 1, 0}, {9, 2, 1, 0}};
  const std::vector<RunPart> parts = cut_runs(runs, 1, 2);
  EXPECT_EQ(num_runs_of(parts), (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_EQ(parts[0].size_bytes, 20U);
  EXPECT_EQ(parts[1].size_bytes, 8U);
  EXPECT_EQ(parts[2].size_bytes, 2U);
  EXPECT_EQ(num_runs_of(cut_runs(runs, 1, 5)), (std::vector<std::size_t>{5}));
}

// As of MPI_SHORT_INT: two runs for each value.
TEST(WindowParts, EndAfterWholeElements) {
  const std::vector<WindowRun> runs{{0, 2, 1, 0},  {4, 4, 1, 0},  {8, 2, 1, 0},
                                    {12, 4, 1, 0}, {16, 2, 1, 0}, {20, 4, 1, 0}};
  EXPECT_EQ(num_runs_of(cut_runs(runs, 6, 3)), (std::vector<std::size_t>{2, 2, 2}));
  EXPECT_EQ(num_runs_of(cut_runs(runs, 6, 5)), (std::vector<std::size_t>{4, 2}));
  // Elements of more runs than a part may have end with a run.
  EXPECT_EQ(num_runs_of(cut_runs(runs, 18, 4)), (std::vector<std::size_t>{4, 2}));
}

std::vector<std::byte> ascending(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(WindowParts, OfAViewHaveItsBytesInTheirOrder) {
  std::vector<std::byte> memory = ascending(200);
  const DataView whole =
      runs_view(memory.data(), {{100, 7, 5, 9}, {90, 3, 1, 0}, {60, 4, 4, -6}, {0, 11, 2, 11}});
  std::vector<std::byte> expected(whole.size_bytes);
  whole.pack(expected.data());
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ViewParts gaps(whole);
    ViewParts dense(DataView::of_bytes(expected.data(), expected.size()));
    std::vector<std::byte> packed(expected.size());
    std::vector<std::byte> copied(expected.size());
    for (std::size_t done = 0; done < packed.size();) {
      const std::size_t size = std::uniform_int_distribution<std::size_t>(1, packed.size() - done)(random);
      const DataView part = gaps.next(size);
      ASSERT_EQ(part.size_bytes, size);
      part.pack(packed.data() + done);
      dense.next(size).pack(copied.data() + done);
      done += size;
    }
    ASSERT_EQ(packed, expected);
    ASSERT_EQ(copied, expected);
  }
}

TEST(WindowParts, OfAnEmptyViewAreEmpty) {
  ViewParts parts{DataView()};
  EXPECT_EQ(parts.next(100).size_bytes, 0U);
}

}  // namespace
}  // namespace weft::mpi
