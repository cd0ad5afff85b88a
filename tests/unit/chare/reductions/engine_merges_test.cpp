// Large values through the engine of collectives; whole reductions of them are in tests/unit/runtime/collective/merged_values_test.cpp.
#include "models/chare/reductions/engine_merges.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "weft/weft.h"

#include "collective/engine.h"
#include "runtime/collective/large_merges.h"
#include "runtime/collective/reductions.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(EngineMerges, TakeWhatAllPesOfOneHostCanMerge) {
  testing::InProcessJob job(3);
  const EngineMerges merges(job.runtime(0));
  const runtime::ScopeId scope{0, 16};
  EXPECT_FALSE(merges.takes(scope, 0, merges.least_bytes() - 1));
  EXPECT_TRUE(merges.takes(scope, 0, merges.least_bytes()));
  EXPECT_TRUE(merges.takes(scope, 0, 1000 * kMiB));
  // Numbers of calls are exactly those of reductions and pieces, or there is no call.
  EXPECT_TRUE(merges.takes(scope, (std::uint64_t{1} << 40) - 1, kMiB));
  EXPECT_FALSE(merges.takes(scope, std::uint64_t{1} << 40, kMiB));
  EXPECT_FALSE(merges.takes(scope, 0, kMiB << 24));
  EXPECT_FALSE(merges.takes({0, std::uint64_t{1} << 48}, 0, kMiB));
}

TEST(EngineMerges, TakeNothingOnSeveralHostsOrOnOnePe) {
  runtime::RuntimeOptions options;
  options.host_of_pe = {0, 0, 1};
  testing::InProcessJob several(3, "loopback", options);
  testing::InProcessJob alone(1);
  for (runtime::Runtime* const runtime : {&several.runtime(0), &alone.runtime(0)}) {
    const EngineMerges merges(*runtime);
    EXPECT_EQ(merges.least_bytes(), std::numeric_limits<std::size_t>::max());
    EXPECT_FALSE(merges.takes({0, 16}, 0, 1000 * kMiB));
  }
}

// The merge of a PE whose peer never begins is freed with its scope, or with the job.
TEST(EngineMerges, EndWithTheirScope) {
  for (const bool closes : {true, false}) {
    testing::InProcessJob job(2);
    const runtime::ScopeId scope{0, 16};
    const auto memory = std::make_shared<std::vector<double>>(kMiB, 1.0);
    {
      EngineMerges merges(job.runtime(0));
      merges.start({.scope = scope,
                    .layout = {.merge = [](runtime::Reducer, std::byte*, const std::byte*, const std::byte*,
                                           std::size_t) {},
                               .element_bytes = sizeof(double)},
                    .elements = std::as_writable_bytes(std::span(*memory)),
                    .target_pe = 1,
                    .memory = memory});
      EXPECT_EQ(merges.num_under_way(), 1U);
      EXPECT_GT(memory.use_count(), 1);
      if (closes) {
        merges.close(scope, true);
        EXPECT_EQ(merges.num_under_way(), 0U);
      }
    }
    EXPECT_EQ(memory.use_count(), 1);
  }
}

struct Adder : Chare<Adder> {
  Task<double> sum() {
    const std::vector<double> values(kMiB / sizeof(double), 1.0);
    co_return (co_await allreduce(values, Reducer::kSum)).back();
  }
};

TEST(EngineMerges, CollectionsThatEndLeaveNothing) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([&](runtime::Runtime& runtime) -> Task<> {
    for (int i = 0; i < 5; ++i) {
      const auto adders = Group<Adder>::create(runtime);
      EXPECT_EQ(co_await adders.call<&Adder::sum>(), std::vector<double>(2, 2.0));
      EXPECT_EQ(runtime.model<collective::Engine>().num_inboxes(), 1U);
      co_await adders.destroy();
      EXPECT_EQ(runtime.model<collective::Engine>().num_inboxes(), 0U);
    }
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
