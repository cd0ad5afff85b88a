#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

// A square of objects, of which each one talks to its four neighbours, in square blocks on 16 PEs. Load rises
// from left to right, and varies by 20 % from object to object.
Snapshot square() {
  constexpr int kSide = 64;
  Snapshot snapshot = empty_snapshot(16);
  std::mt19937_64 random(1);
  for (int i = 0; i < kSide * kSide; ++i) {
    const int row = i / kSide;
    const int column = i % kSide;
    const double factor = 0.8 + 0.4 * static_cast<double>(random() % 1000) / 1000;
    add_object(snapshot, row / 16 * 4 + column / 16, factor * (1 + 9.0 * column / kSide));
    const auto object = static_cast<std::uint32_t>(i);
    if (column > 0) snapshot.edges.push_back({object - 1, object, 1, 1000});
    if (row > 0) snapshot.edges.push_back({object - kSide, object, 1, 1000});
  }
  return snapshot;
}

TEST(Diffusion, KeepsObjectsTogetherThatTalkToEachOther) {
  const Snapshot snapshot = square();
  const Summary diffusion = outcome("diffusion", snapshot);
  EXPECT_LE(diffusion.imbalance_after, 0.05);
  for (const char* other : {"greedy", "greedy_refine", "refine"}) {
    EXPECT_LT(diffusion.external_bytes_after * 2, outcome(other, snapshot).external_bytes_after) << other;
  }
}

// Without the edges the same loads are spread without regard to them.
TEST(Diffusion, TheEdgesDecideWhatMoves) {
  const Snapshot snapshot = square();
  Snapshot without_edges = snapshot;
  without_edges.edges.clear();
  const Placement placement = place("diffusion", without_edges);
  EXPECT_GT(external_bytes(snapshot, placement), 2 * external_bytes(snapshot, place("diffusion", snapshot)));
}

TEST(Diffusion, MovesNothingIfNeighboursAreEven) {
  EXPECT_EQ(outcome("diffusion", blocks(9, 4, [](int) { return 1; })).moves, 0U);
}

TEST(Diffusion, LoadCrossesAnyNumberOfPes) {
  for (const int num_pes : {2, 3, 5, 7, 12, 33, 100}) {
    Snapshot snapshot = blocks(num_pes, 64, [](int) { return 1; });
    for (ObjectLoad& object : snapshot.objects) object.pe = num_pes - 1;
    EXPECT_LE(outcome("diffusion", snapshot).imbalance_after, 0.1) << num_pes << " PEs";
  }
}

}  // namespace
}  // namespace weft::balance
