// What Memory's tests do not see of the copy engine: bounded streams, the result of progress(), and its end.
#include "memory/copy/copy_engine.h"

#include <chrono>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/kinds/host/host_backend.h"
#include "tests/support/busy_stream.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class CopyEngineTest : public ::testing::Test {
 protected:
  // Stream handles are numbered: the difference of two new ones tells how many were made between.
  std::uintptr_t stream_number() {
    const StreamHandle stream = emulated.create_stream(0).value();
    EXPECT_TRUE(emulated.destroy_stream(stream).ok());
    return reinterpret_cast<std::uintptr_t>(stream);
  }
  Buffer make(std::size_t size_bytes, Place place) {
    return {emulated.allocate(size_bytes, place.device).value(), size_bytes, place, nullptr};
  }
  void poll_until_idle() {
    for (int i = 0; i < kManyPolls && engine.has_pending(); ++i) engine.progress();
    EXPECT_FALSE(engine.has_pending());
  }

  HostBackend host;
  EmulatedBackend emulated{2};
  CopyEngine engine{{&host, nullptr, &emulated}};
};

TEST_F(CopyEngineTest, IdleMeansNothingToDo) {
  EXPECT_FALSE(engine.has_pending());
  EXPECT_FALSE(engine.progress());
}

TEST_F(CopyEngineTest, CopiesOneAfterTheOtherDoNotPileUpStreams) {
  const Buffer device = make(64, kDevice0);
  std::vector<unsigned char> bytes(64);
  const std::uintptr_t before = stream_number();
  for (int i = 0; i < 10; ++i) {
    Outcome outcome;
    ASSERT_TRUE(engine.copy(device, host_buffer(bytes), &outcome).is_pending());
    poll_until_idle();
  }
  EXPECT_LT(stream_number() - before, 5u);
}

TEST_F(CopyEngineTest, ManyCopiesShareFewStreams) {
  const Buffer device0 = make(64, kDevice0);
  const Buffer device1 = make(64, kDevice1);
  std::vector<unsigned char> bytes(64);
  std::vector<Outcome> outcomes(100);
  const std::uintptr_t before = stream_number();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_TRUE(engine.copy(i % 2 == 0 ? device0 : device1, host_buffer(bytes), &outcomes[i]).is_pending());
  }
  EXPECT_LT(stream_number() - before, 20u);
  poll_until_idle();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls, 1);
}

TEST_F(CopyEngineTest, GatedCopiesOneAfterTheOtherDoNotPileUpStreams) {
  Buffer device = make(64, kDevice0);
  device.stream = emulated.create_stream(0).value();
  std::vector<unsigned char> bytes(64);
  const std::uintptr_t before = stream_number();
  for (int i = 0; i < 50; ++i) {
    Outcome outcome;
    const bool reads = i % 2 == 0;
    ASSERT_TRUE(
        engine.copy(reads ? host_buffer(bytes) : device, reads ? device : host_buffer(bytes), &outcome)
            .is_pending());
    poll_until_idle();
    ASSERT_TRUE(outcome.status.ok());
  }
  EXPECT_LT(stream_number() - before, 5u);
}

TEST_F(CopyEngineTest, DeferredCopiesFailWithTheirStreams) {
  const Buffer device = make(64, kDevice0);
  bool go = false;
  const auto kernel = [&] {
    return go ? Status(StatusCode::kInternal, "kernel went wrong") : Status::pending();
  };
  std::vector<unsigned char> bytes(64, 5);
  std::vector<Outcome> outcomes(50);
  for (Outcome& outcome : outcomes) {
    const Buffer produced = testing::behind(emulated, kernel, device);
    ASSERT_TRUE(engine.copy(host_buffer(bytes), produced, &outcome).is_pending());
  }
  for (int i = 0; i < 20; ++i) engine.progress();
  go = true;
  poll_until_idle();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.message(), "kernel went wrong");
  }
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 5)) << "garbage was copied";
}

TEST_F(CopyEngineTest, ProgressSaysWhetherSomethingCompleted) {
  const Buffer device = make(64, kDevice0);
  std::vector<unsigned char> bytes(64);
  EmulatedFaults faults;
  faults.polls_per_copy = 3;
  emulated.set_faults(faults);
  Outcome outcome;
  ASSERT_TRUE(engine.copy(device, host_buffer(bytes), &outcome).is_pending());
  EXPECT_FALSE(engine.progress());
  EXPECT_FALSE(engine.progress());
  EXPECT_EQ(outcome.calls, 0);
  EXPECT_TRUE(engine.progress());
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_FALSE(engine.progress());
}

TEST_F(CopyEngineTest, ARefusedCopyLeavesNothingBehind) {
  const Buffer device = make(64, kDevice0);
  std::vector<unsigned char> bytes(64);
  Buffer wrong = device;
  wrong.stream = reinterpret_cast<StreamHandle>(0x77);
  Outcome first;
  Outcome refused;
  Outcome last;
  ASSERT_TRUE(engine.copy(device, host_buffer(bytes), &first).is_pending());
  EXPECT_EQ(engine.copy(wrong, host_buffer(bytes), &refused).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(engine.copy(device, host_buffer(bytes), &last).is_pending());
  poll_until_idle();
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(refused.calls, 0);
  EXPECT_EQ(last.calls, 1);
}

TEST_F(CopyEngineTest, WhatWasDoneBeforeCloseKeepsItsOutcome) {
  std::vector<unsigned char> bytes(64);
  Outcome empty;
  ASSERT_TRUE(engine.copy(Buffer{}, ConstBuffer{}, &empty).is_pending());
  Outcome full;
  std::vector<unsigned char> to(64);
  ASSERT_TRUE(engine.copy(host_buffer(to), host_buffer(bytes), &full).is_pending());
  engine.close();
  EXPECT_TRUE(empty.status.ok());
  EXPECT_EQ(empty.calls, 1);
  EXPECT_EQ(full.status.code(), StatusCode::kClosed);
  EXPECT_EQ(full.calls, 1);
  engine.close();
  EXPECT_EQ(full.calls, 1);
  Outcome late;
  EXPECT_EQ(engine.when_stream_done(kDevice0, nullptr, &late).code(), StatusCode::kClosed);
}

TEST_F(CopyEngineTest, CloseGivesUpOnADeviceThatHangs) {
  CopyEngine impatient{{&host, nullptr, &emulated}, std::chrono::milliseconds(1)};
  const Buffer device = testing::behind(emulated, &Status::pending, make(64, kDevice0));
  std::vector<unsigned char> bytes(64, 5);
  std::vector<Outcome> gated(30);  // some with lanes, the others deferred
  for (std::size_t i = 0; i < gated.size(); ++i) {
    const bool reads = i % 2 == 0;
    ASSERT_TRUE(
        impatient.copy(reads ? host_buffer(bytes) : device, reads ? device : host_buffer(bytes), &gated[i])
            .is_pending());
  }
  Outcome watch;
  ASSERT_TRUE(impatient.when_stream_done(kDevice0, device.stream, &watch).is_pending());
  impatient.close();
  for (const Outcome& outcome : gated) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
  }
  EXPECT_EQ(watch.calls, 1);
  EXPECT_EQ(watch.status.code(), StatusCode::kClosed);
  EXPECT_FALSE(impatient.has_pending());
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 5));
}

TEST_F(CopyEngineTest, TimeoutEndsOnceForAllWaits) {
  CopyEngine impatient{{&host, nullptr, &emulated}, std::chrono::milliseconds(1)};
  int polls = 0;
  EXPECT_TRUE(impatient.wait_for_devices([&] { return ++polls == 1; })) << "looked at before it ends";
  EXPECT_FALSE(impatient.wait_for_devices([] { return false; }));
  polls = 0;
  EXPECT_FALSE(impatient.wait_for_devices([&] { return ++polls == 2; }));
  EXPECT_EQ(polls, 1) << "it waited again";
  EXPECT_TRUE(impatient.wait_for_devices([] { return true; }));
}

TEST_F(CopyEngineTest, ACompletionCalledByCloseCannotStartAnother) {
  struct Restart : Outcome {
    explicit Restart(CopyEngine& engine_in) : engine(engine_in) { function = &Restart::again; }
    static void again(base::Completion* self, Status status, std::size_t size_bytes) {
      auto* restart = static_cast<Restart*>(self);
      Outcome::record(self, std::move(status), size_bytes);
      restart->restarted = restart->engine.copy(Buffer{}, ConstBuffer{}, restart);
    }
    CopyEngine& engine;
    Status restarted;
  };
  const Buffer device = make(64, kDevice0);
  std::vector<unsigned char> bytes(64);
  Restart restart(engine);
  ASSERT_TRUE(engine.copy(device, host_buffer(bytes), &restart).is_pending());
  engine.close();
  EXPECT_EQ(restart.calls, 1);
  EXPECT_EQ(restart.restarted.code(), StatusCode::kClosed);
}

}  // namespace
}  // namespace weft::memory
