// Strategies that the program registers, in jobs.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "balance/strategy_table.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

using balance::Placement;
using balance::Snapshot;

constexpr const char* kName = "of_the_test";

// Runs one step of six elements on three PEs with that strategy. Element 0 is pinned. Returns what failed, empty if nothing did.
std::string failure_with(balance::StrategyFunction function, std::vector<int>* pes = nullptr) {
  balance::register_strategy(kName, std::move(function));
  std::string failure;
  {
    InProcessJob job(3);
    use_strategy(job, kName);
    failure = job.run([pes](Runtime& runtime) -> Task<> {
      auto workers = Array<Worker>::create(runtime, {6});
      co_await workers[0].call<&Worker::pin>(true);
      const std::vector<double> loads{1, 2, 3, 4, 5, 6};
      co_await step(runtime, workers, loads);
      auto now = co_await workers.call<&Worker::where_now>();
      if (pes != nullptr) *pes = std::move(now);
    });
  }
  balance::unregister_strategy(kName);
  return failure;
}

TEST(SyncStrategy, AFunctionOfTheProgramDecides) {
  std::vector<int> pes;
  Snapshot seen;
  EXPECT_EQ(failure_with(
                [&seen](const Snapshot& snapshot) {
                  seen = snapshot;
                  return Placement{0, 2, 1, 0, 2, 1};
                },
                &pes),
            "");
  EXPECT_EQ(pes, list(0, 2, 1, 0, 2, 1));
  ASSERT_EQ(seen.objects.size(), 6U);
  EXPECT_EQ(seen.num_pes, 3);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(seen.objects[i].index, i);
    EXPECT_EQ(seen.objects[i].pe, static_cast<int>(i / 2));
    EXPECT_EQ(seen.objects[i].load_s, static_cast<double>(i + 1));
    EXPECT_EQ(seen.objects[i].can_move, i != 0);
  }
}

TEST(SyncStrategy, AWrongPlacementEndsTheJobWithTheStrategyAndTheObject) {
  const auto failure_of = [](const Placement& placement) {
    const std::string failure = failure_with([placement](const Snapshot&) { return placement; });
    EXPECT_TRUE(says(failure, "the load-balancing strategy 'of_the_test' in step 1 of ")) << failure;
    EXPECT_TRUE(says(failure, "Worker is wrong: ")) << failure;
    return failure;
  };
  EXPECT_TRUE(says(failure_of({0, 0, 0}), "a placement names 3 PEs for 6 objects"));
  EXPECT_TRUE(says(failure_of({0, 0, 1, 1, 2, 3}), "a placement puts object 5 of collection"));
  EXPECT_TRUE(says(failure_of({0, 0, 1, 1, 2, -1}), "on PE -1; expected 0 to 2"));
  EXPECT_TRUE(says(failure_of({1, 0, 1, 1, 2, 2}), "a placement moves object 0 of collection"));
}

TEST(SyncStrategy, AnExceptionEndsTheJobWithTheStrategy) {
  const std::string failure =
      failure_with([](const Snapshot&) -> Placement { throw std::runtime_error("the tables are missing"); });
  EXPECT_TRUE(says(failure, "the load-balancing strategy 'of_the_test' in step 1 of ")) << failure;
  EXPECT_TRUE(says(failure, "the tables are missing")) << failure;
}

}  // namespace
}  // namespace weft::chare::sync_testing
