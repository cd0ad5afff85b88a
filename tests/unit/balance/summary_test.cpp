#include "balance/summary.h"

#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

TEST(Summary, CountsWhatAPlacementDoes) {
  Snapshot snapshot = empty_snapshot(2);
  snapshot.background_load_s = {1, 0};
  snapshot.pe_speed = {1, 2};
  for (const double load_s : {2.0, 4.0, 1.0}) add_object(snapshot, 0, load_s);
  snapshot.edges = {{0, 1, 1, 10}, {1, 2, 1, 100}, {0, 2, 1, 1000}, {2, 2, 1, 10000}};
  // PE 0: 1 + 2 + 4 + 1 = 8. PE 1: 0. Then PE 0: 1 + 2 + 1 = 4, PE 1: 4 / 2 = 2.
  const Summary summary = summarize(snapshot, {0, 1, 0});
  EXPECT_DOUBLE_EQ(summary.max_before_s, 8);
  EXPECT_DOUBLE_EQ(summary.average_before_s, 4);
  EXPECT_DOUBLE_EQ(summary.imbalance_before, 1);
  EXPECT_DOUBLE_EQ(summary.max_after_s, 4);
  EXPECT_DOUBLE_EQ(summary.average_after_s, 3);
  EXPECT_DOUBLE_EQ(summary.imbalance_after, 4.0 / 3 - 1);
  EXPECT_EQ(summary.moves, 1U);
  EXPECT_EQ(summary.bytes_moved, 100U);
  EXPECT_EQ(summary.external_bytes_before, 0U);
  EXPECT_EQ(summary.external_bytes_after, 110U);
}

TEST(Summary, WithoutLoadThereIsNoImbalance) {
  Snapshot snapshot = empty_snapshot(3);
  EXPECT_EQ(summarize(snapshot, {}).imbalance_after, 0);
  add_object(snapshot, 2, 0);
  EXPECT_EQ(summarize(snapshot, {1}).imbalance_after, 0);
}

}  // namespace
}  // namespace weft::balance
