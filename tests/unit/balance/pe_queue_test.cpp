#include "balance/strategies/pe_queue.h"

#include <gtest/gtest.h>

#include "snapshots.h"

namespace weft::balance {
namespace {

TEST(PeQueue, FindsTheEarliestPeLikeASearchOfAll) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Snapshot snapshot = random_snapshot(seed, {.background = true, .speeds = seed % 2 == 0});
    PeQueue pes(snapshot, fixed_times_s(snapshot));
    std::mt19937_64 random(seed);
    for (const ObjectLoad& object : snapshot.objects) {
      // Loads also come to PEs that the queue did not name.
      pes.add(static_cast<int>(random() % static_cast<std::uint64_t>(snapshot.num_pes)), object.load_s);
      const int found = pes.earliest(object.load_s);
      for (int pe = 0; pe < snapshot.num_pes; ++pe) {
        const double finish_s = pes.finish_s(pe, object.load_s);
        ASSERT_LE(pes.finish_s(found, object.load_s), finish_s);
        const bool same =
            finish_s == pes.finish_s(found, object.load_s) && snapshot.speed(pe) == snapshot.speed(found);
        if (same) {
          ASSERT_LE(found, pe);
        }
      }
      pes.add(found, object.load_s);
    }
  }
}

TEST(PeQueue, MovableObjectsAreSortedAndFixedOnesCountAsTime) {
  Snapshot snapshot = empty_snapshot(2);
  snapshot.background_load_s = {0.5, 0.25};
  snapshot.pe_speed = {1, 4};
  add_object(snapshot, 0, 1);
  add_object(snapshot, 1, 8, false);
  add_object(snapshot, 0, 3);
  add_object(snapshot, 1, 3);
  EXPECT_EQ(fixed_times_s(snapshot), (std::vector<double>{0.5, 2.25}));
  std::vector<std::uint32_t> order;
  for (const MovableObject& movable : movable_by_load(snapshot)) order.push_back(movable.object);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 3, 0}));
}

}  // namespace
}  // namespace weft::balance
