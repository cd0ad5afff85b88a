#include "weft/runtime/metering/device_time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"
#include "tests/support/thread_time.h"

namespace weft::runtime {
namespace {

constexpr memory::Place kPlace{memory::Kind::kEmulated, 0};
constexpr double kUnitS = 200e-6;

struct DeviceTimeTest : ::testing::Test {
  // Queues a kernel of so many units of time.
  void launch(memory::StreamHandle on, int units) {
    auto kernel = [units] {
      const auto end = testing::thread_time() + units * std::chrono::microseconds(200);
      while (testing::thread_time() < end) {
      }
      return Status();
    };
    ASSERT_TRUE(device.launch(on, kPlace.device, kernel).ok());
  }
  // Waits until the device has done what is queued there now.
  void finish(memory::StreamHandle on) {
    const memory::EventHandle event = device.record(on, kPlace.device).value();
    while (device.query(event).is_pending()) {
    }
    device.release_event(event);
  }
  double settled_s() {
    time->settle();
    return time->seconds();
  }

  std::uint64_t last_pending() { return time->last_pending(job.runtime(0).device_meter().num_spans); }

  testing::InProcessJob job{1};
  memory::EmulatedBackend& device = testing::emulated(job.memory(0));
  memory::StreamHandle stream = device.create_stream(kPlace.device).value();
  memory::StreamHandle other = device.create_stream(kPlace.device).value();
  std::unique_ptr<DeviceTime> time = std::make_unique<DeviceTime>(job.runtime(0));
};

// The time of all kernels is the sum of the times of its parts.
TEST_F(DeviceTimeTest, CountsTheWorkOfItsSpansOnly) {
  DeviceTime before(job.runtime(0));
  DeviceTime after(job.runtime(0));
  DeviceTime all(job.runtime(0));
  all.begin(kPlace, stream);
  for (DeviceTime* const part : {&before, time.get(), &after}) {
    part->begin(kPlace, stream);
    launch(stream, 2);
    part->end(kPlace, stream);
  }
  all.end(kPlace, stream);
  EXPECT_EQ(settled_s(), 0) << "the device has done nothing yet";
  EXPECT_EQ(last_pending(), 2U);
  finish(stream);
  EXPECT_GE(settled_s(), 2 * kUnitS);
  EXPECT_EQ(last_pending(), 0U);
  for (DeviceTime* const other : {&before, &after, &all}) other->settle();
  EXPECT_NEAR(all.seconds(), before.seconds() + time->seconds() + after.seconds(), 1e-12);
  const double once = time->seconds();
  EXPECT_EQ(settled_s(), once) << "a span counts once";
  time->begin(kPlace, stream);
  time->end(kPlace, stream);
  finish(stream);
  EXPECT_EQ(settled_s(), once) << "an empty span takes no time";
  time->reset();
  EXPECT_EQ(settled_s(), 0);
}

TEST_F(DeviceTimeTest, OverlappingSpansOfOneStreamAreOne) {
  DeviceTime whole(job.runtime(0));
  whole.begin(kPlace, stream);
  time->begin(kPlace, stream);
  launch(stream, 1);
  time->begin(kPlace, stream);
  launch(stream, 4);
  time->end(kPlace, stream);
  launch(stream, 1);
  time->end(kPlace, stream);
  whole.end(kPlace, stream);
  launch(stream, 1);
  finish(stream);
  whole.settle();
  EXPECT_GE(settled_s(), 6 * kUnitS);
  EXPECT_EQ(time->seconds(), whole.seconds());
}

TEST_F(DeviceTimeTest, SpansOfSeveralStreamsAddUp) {
  time->begin(kPlace, stream);
  time->begin(kPlace, other);
  launch(stream, 2);
  launch(other, 3);
  time->end(kPlace, stream);
  time->end(kPlace, other);
  EXPECT_EQ(last_pending(), 2U);
  EXPECT_EQ(time->last_pending(1), 1U);
  EXPECT_EQ(time->last_pending(0), 0U);
  finish(stream);
  finish(other);
  EXPECT_GE(settled_s(), 5 * kUnitS);
}

TEST_F(DeviceTimeTest, NoStreamIsTheOneOfProgramsThatNameNone) {
  time->begin(kPlace, nullptr);
  launch(nullptr, 1);
  time->end(kPlace, nullptr);
  finish(nullptr);
  EXPECT_GE(settled_s(), kUnitS);
}

TEST_F(DeviceTimeTest, TellsWhenTheLastSpanIsDone) {
  bool may_end = false;
  int calls = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    time->begin(kPlace, stream);
    EXPECT_TRUE(device.launch(stream, kPlace.device, testing::until(may_end)).ok());
    time->end(kPlace, stream);
    time->when_done(last_pending(), [&calls] { ++calls; });
    for (int i = 0; i < 50; ++i) co_await runtime.sleep(0);
    EXPECT_EQ(calls, 0);
    may_end = true;
    while (calls == 0) co_await runtime.sleep(0);
    time->settle();
    EXPECT_EQ(last_pending(), 0U);
  }),
            "");
  EXPECT_EQ(calls, 1);
}

// The operation has a share of the span.
TEST_F(DeviceTimeTest, MayEndWhileSpansArePending) {
  bool may_end = false;
  int calls = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    time->begin(kPlace, stream);
    EXPECT_TRUE(device.launch(stream, kPlace.device, testing::until(may_end)).ok());
    time->end(kPlace, stream);
    time->begin(kPlace, other);  // stays open
    time->when_done(last_pending(), [&calls] { ++calls; });
    time.reset();
    may_end = true;
    while (calls == 0) co_await runtime.sleep(0);
  }),
            "");
  EXPECT_EQ(calls, 1);
}

TEST_F(DeviceTimeTest, TheJobMayEndWhileSpansArePending) {
  bool never = false;
  time->begin(kPlace, stream);
  time->begin(kPlace, other);
  EXPECT_TRUE(device.launch(stream, kPlace.device, testing::until(never)).ok());
  time->end(kPlace, stream);
  time->when_done(last_pending(), [] { FAIL() << "it is not done"; });
  job.runtime(0).close();
  time->end(kPlace, other);
  time->begin(kPlace, stream);
  time->end(kPlace, stream);
  EXPECT_EQ(settled_s(), 0);
}

TEST_F(DeviceTimeTest, ManySpansAreSettledOnTheWay) {
  for (int i = 0; i < 100; ++i) {
    time->begin(kPlace, stream);
    launch(stream, 1);
    time->end(kPlace, stream);
    finish(stream);
  }
  EXPECT_GE(time->seconds(), 50 * kUnitS) << "without settle()";
  EXPECT_GE(settled_s(), 100 * kUnitS);
}

TEST_F(DeviceTimeTest, AFailureIsReportedOnceAndTakesNoTime) {
  ::testing::internal::CaptureStderr();
  constexpr memory::Place kNoPlace{memory::Kind::kEmulated, 99};
  for (int i = 0; i < 3; ++i) {
    time->begin(kNoPlace, stream);
    time->begin(kNoPlace, stream);
    time->end(kNoPlace, stream);
    time->end(kNoPlace, stream);
  }
  // A kernel that fails in a span.
  time->begin(kPlace, stream);
  ASSERT_TRUE(device.launch(stream, kPlace.device, [] { return Status(StatusCode::kInternal, "no"); }).ok());
  time->end(kPlace, stream);
  finish(stream);
  // A stream that is destroyed in a span.
  time->begin(kPlace, other);
  ASSERT_TRUE(device.destroy_stream(other).ok());
  time->end(kPlace, other);
  EXPECT_EQ(settled_s(), 0);
  EXPECT_EQ(last_pending(), 0U);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("weft: PE 0: a span of device work could not be measured"), 0U) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  // It measures on.
  time->begin(kPlace, stream);
  launch(stream, 1);
  time->end(kPlace, stream);
  finish(stream);
  EXPECT_GE(settled_s(), kUnitS);
}

TEST_F(DeviceTimeTest, AnEndWithoutABeginDoesNothing) {
  time->end(kPlace, stream);
  EXPECT_EQ(settled_s(), 0);
  EXPECT_EQ(last_pending(), 0U);
}

}  // namespace
}  // namespace weft::runtime
