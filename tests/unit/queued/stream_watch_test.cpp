#include "queued/stream_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/support/errors.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::queued {
namespace {

using base::Status;
using base::StatusCode;

constexpr memory::Place kWatchedDevice{memory::Kind::kEmulated, 0};

class StreamWatches : public ::testing::Test {
 protected:
  memory::EmulatedBackend& kind() { return testing::emulated(job.memory(0)); }
  // Adds work to the stream that lasts until `may_end`, and notes it.
  void note(StreamWatch& watch, memory::StreamHandle stream, const bool& may_end,
            std::shared_ptr<void> keeper) {
    ASSERT_TRUE(kind().launch(stream, 0, testing::until(may_end)).ok());
    watch.note(kWatchedDevice, stream, std::move(keeper));
  }
  void take_turns(int count = 50) {
    for (int turn = 0; turn < count; ++turn) job.runtime(0).step();
  }

  testing::PgasJob job{1};
};

TEST_F(StreamWatches, IsOverWhenAllStreamsAre) {
  StreamWatch watch(job.runtime(0), "a test");
  EXPECT_TRUE(watch.is_idle());
  EXPECT_TRUE(watch.over().is_ready());
  bool first_may_end = false;
  bool second_may_end = false;
  note(watch, kind().create_stream(0).value(), first_may_end, nullptr);
  note(watch, kind().create_stream(0).value(), second_may_end, nullptr);
  const runtime::Future<> over = watch.over();
  first_may_end = true;
  take_turns();
  EXPECT_FALSE(over.is_ready());
  EXPECT_FALSE(watch.is_idle());
  second_may_end = true;
  ASSERT_EQ(job.run_until([&] { return over.is_ready(); }), "");
  EXPECT_TRUE(watch.is_idle());
}

// A program that never lets its stream run empty does not collect what all its work has used.
TEST_F(StreamWatches, AKeeperGoesWithItsWorkThoughTheStreamGoesOn) {
  constexpr int kRounds = 40;
  StreamWatch watch(job.runtime(0), "a test");
  const memory::StreamHandle stream = kind().create_stream(0).value();
  std::vector<std::weak_ptr<int>> kept;
  const auto may_end = std::make_unique<bool[]>(kRounds);
  const auto always = std::make_shared<int>(0);
  int most = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto keeper = std::make_shared<int>(round);
    kept.emplace_back(keeper);
    note(watch, stream, may_end[static_cast<std::size_t>(round)], std::move(keeper));
    watch.note(kWatchedDevice, stream, always);
    EXPECT_FALSE(kept.back().expired());
    if (round > 0) may_end[static_cast<std::size_t>(round - 1)] = true;  // one is always at work
    take_turns();
    const auto alive = std::ranges::count_if(kept, [](const auto& one) { return !one.expired(); });
    most = std::max(most, static_cast<int>(alive));
    EXPECT_FALSE(watch.is_idle());
  }
  EXPECT_LE(most, 4);
  EXPECT_GE(always.use_count(), 2);
  may_end[kRounds - 1] = true;
  ASSERT_EQ(job.run_until([&] { return watch.is_idle(); }), "");
  EXPECT_EQ(always.use_count(), 1);
}

TEST_F(StreamWatches, AKeeperMayQueueWorkWhenItEnds) {
  StreamWatch watch(job.runtime(0), "a test");
  const memory::StreamHandle stream = kind().create_stream(0).value();
  const bool may_end = true;
  bool has_queued = false;
  {
    const std::shared_ptr<void> last(nullptr, [&](void*) {
      has_queued = true;
      note(watch, stream, may_end, nullptr);
      note(watch, kind().create_stream(0).value(), may_end, nullptr);
    });
    note(watch, stream, may_end, last);
  }
  ASSERT_EQ(job.run_until([&] { return has_queued && watch.is_idle(); }), "");
}

TEST_F(StreamWatches, TheFirstFailureIsThatOfOver) {
  StreamWatch watch(job.runtime(0), "a test");
  const bool may_end = false;
  const memory::StreamHandle stream = kind().create_stream(0).value();
  const auto keeper = std::make_shared<int>(0);
  ASSERT_TRUE(kind().launch(stream, 0, [] { return Status(StatusCode::kInternal, "a fault"); }).ok());
  note(watch, stream, may_end, keeper);
  const runtime::Future<> over = watch.over();
  ASSERT_EQ(job.run_until([&] { return over.is_ready(); }), "");
  EXPECT_TRUE(test_support::says(test_support::thrown_by([&] { over.get(); }), "a fault"));
  EXPECT_EQ(keeper.use_count(), 1);
  EXPECT_TRUE(watch.over().is_ready());
}

TEST_F(StreamWatches, AFailureThatNothingAwaitsEndsTheJob) {
  StreamWatch watch(job.runtime(0), "a test");
  const memory::StreamHandle stream = kind().create_stream(0).value();
  ASSERT_TRUE(kind().launch(stream, 0, [] { return Status(StatusCode::kInternal, "a fault"); }).ok());
  watch.note(kWatchedDevice, stream, nullptr);
  EXPECT_TRUE(test_support::says(job.run_until([&] { return watch.is_idle(); }), "a fault"));
}

// Quiescence waits for it, and the watch may go before its work.
TEST_F(StreamWatches, QuiescenceWaits) {
  bool may_end = false;
  const auto keeper = std::make_shared<int>(0);
  {
    StreamWatch watch(job.runtime(0), "a test");
    note(watch, kind().create_stream(0).value(), may_end, keeper);
  }
  const runtime::Future<> quiet = job.runtime(0).quiescence();
  take_turns(500);
  EXPECT_FALSE(quiet.is_ready());
  EXPECT_EQ(keeper.use_count(), 2);
  may_end = true;
  ASSERT_EQ(job.run_until([&] { return quiet.is_ready(); }), "");
  EXPECT_EQ(keeper.use_count(), 1);
}

}  // namespace
}  // namespace weft::queued
