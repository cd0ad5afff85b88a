// Collections that take part in load balancing, saved and restored.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/chare/saved_chares.h"

namespace weft::chare::saved {
namespace {

struct Balanced : Chare<Balanced> {
  void pup(Pup& p) { p | num_resumed; }
  void resume_from_sync() override {
    ++num_resumed;
    if (contributes) contribute(1, Reducer::kSum, target_of(over));
    contributes = false;
  }
  void sync(Future<int> target) {
    over = std::move(target);
    contributes = true;
    at_sync();
  }
  void sync_alone() { at_sync(); }
  void set_load(double load_s) { set_load_s(load_s); }
  double load() { return load_s(); }
  int times_resumed() { return num_resumed; }

  Future<int> over;
  bool contributes = false;
  int num_resumed = 0;
};

TEST(CheckpointSync, ARestoredCollectionReachesSyncPointsAndKeepsItsLoads) {
  const TemporaryFolder folder;
  for (const int num_pes : {2, 3}) {
    InProcessJob job(num_pes);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Balanced> balanced;
      const bool is_first = !has_checkpoint(folder.path());
      if (is_first) {
        balanced = Array<Balanced>::create(runtime, {6});
        co_await balanced[4].call<&Balanced::set_load>(4.5);
      } else {
        co_await restore(runtime, folder.path(), balanced);
      }
      EXPECT_EQ(co_await balanced[4].call<&Balanced::load>(), 4.5);
      EXPECT_LT(co_await balanced[3].call<&Balanced::load>(), 4.5);
      Future<int> over(runtime);
      balanced.send<&Balanced::sync>(over);
      EXPECT_EQ(co_await over, 6);
      EXPECT_EQ((co_await balanced.call<&Balanced::times_resumed>()), std::vector<int>(6, is_first ? 1 : 2));
      if (is_first) co_await checkpoint(runtime, folder.path(), balanced);
    }),
              "");
  }
}

TEST(CheckpointSync, AnElementThatWaitsAtASyncPointIsNotSaved) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto balanced = Array<Balanced>::create(runtime, {4});
    co_await balanced[1].call<&Balanced::sync_alone>();
    EXPECT_TRUE(says(co_await error_of(checkpoint(runtime, folder.path(), balanced)),
                     "Balanced[1] on PE 0 cannot be saved: it waits at a sync point"));
    for (const int i : {0, 2, 3}) co_await balanced[i].call<&Balanced::sync_alone>();
    co_await runtime.quiescence();
    co_await checkpoint(runtime, folder.path(), balanced);
  }),
            "");
}

}  // namespace
}  // namespace weft::chare::saved
