#include "runtime/collective/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::runtime {
namespace {

std::vector<std::uint64_t> sequences_of(const ProgressTable& table) {
  std::vector<std::uint64_t> sequences = table.sequences();
  std::ranges::sort(sequences);
  return sequences;
}

TEST(ProgressTable, KeepsAnyNumberOfReductions) {
  ProgressTable table;
  EXPECT_EQ(table.find(5), nullptr);
  for (std::uint64_t sequence = 5; sequence < 10; ++sequence) {
    Progress& progress = table.at(sequence);
    EXPECT_EQ(progress.sequence, sequence);
    EXPECT_EQ(progress.step, -1);
    progress.local_contributions = sequence;
  }
  for (std::uint64_t sequence = 5; sequence < 10; ++sequence) {
    EXPECT_EQ(table.at(sequence).local_contributions, sequence);
    EXPECT_EQ(table.find(sequence), &table.at(sequence));
  }
  EXPECT_EQ(sequences_of(table), (std::vector<std::uint64_t>{5, 6, 7, 8, 9}));
}

TEST(ProgressTable, AForgottenReductionLeavesNothingToTheNext) {
  ProgressTable table;
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
    Progress& progress = table.at(sequence);
    progress.local_contributions = 1;
    progress.merged.count = 1;
    progress.exchanges = progress.sent = true;
    progress.step = 3;
    progress.children_done = 2;
  }
  for (const std::uint64_t sequence : {0U, 3U}) table.forget(table.at(sequence));
  EXPECT_EQ(sequences_of(table), (std::vector<std::uint64_t>{1, 2}));
  const Progress& next = table.at(4);
  EXPECT_EQ(next.sequence, 4U);
  EXPECT_EQ(next.local_contributions, 0U);
  EXPECT_EQ(next.merged.count, 0U);
  EXPECT_FALSE(next.exchanges || next.sent);
  EXPECT_EQ(next.step, -1);
  EXPECT_EQ(next.children_done, 0);
}

}  // namespace
}  // namespace weft::runtime
