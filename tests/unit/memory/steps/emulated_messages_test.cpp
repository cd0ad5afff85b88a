#include <array>
#include <cstdint>

#include "gtest/gtest.h"

#include "tests/support/device_memory.h"
#include "tests/unit/memory/places.h"
#include "tests/unit/memory/steps/message_cases.h"
#include "tests/unit/memory/steps/ring_cases.h"

namespace weft::memory {
namespace {

using base::StatusCode;

class EmulatedMessagesTest : public ::testing::Test {
 protected:
  ~EmulatedMessagesTest() override { memory.close(); }

  EmulatedBackend& kind() { return testing::emulated(memory); }
  void until(const std::function<bool()>& holds) {
    for (int i = 0; i < 10000 && !holds(); ++i) memory.progress();
    ASSERT_TRUE(holds());
  }

  Memory memory;
};

TEST_F(EmulatedMessagesTest, OfAllSizes) {
  expect_all_messages(memory, kDevice0, kDevice1, [this](const auto& holds) { until(holds); });
}

TEST_F(EmulatedMessagesTest, ThroughRings) {
  const auto holds = [this](const auto& condition) { until(condition); };
  expect_rings(memory, kDevice0, kDevice1, holds);
  expect_awaited_ring(memory, kDevice0, kDevice1, holds);
}

TEST_F(EmulatedMessagesTest, ATakeOfAnotherLabelFailsAndCopiesNothing) {
  const auto holds = [this](const auto& condition) { until(condition); };
  for (const WrongTake& wrong : kWrongTakes) {
    const MessageRing ring(memory, kDevice0, kDevice1, holds);
    const std::string failure = failure_of(wrong, memory, kDevice0, kDevice1, holds, ring);
    EXPECT_NE(failure.find("a receive names another size or tag"), std::string::npos) << failure;
    const auto result = ring.result();
    EXPECT_EQ(std::ranges::count(result, 0), static_cast<std::ptrdiff_t>(result.size()));
  }
}

TEST_F(EmulatedMessagesTest, WhatLeavesItsMemoryIsRefused) {
  const Buffer device = memory.allocate(256, kDevice0).value();
  const StreamHandle stream = kind().create_stream(0).value();
  auto* const words = static_cast<std::uint32_t*>(device.data);
  auto* const counts = static_cast<MessageCount*>(device.data);
  auto* const bytes = static_cast<std::byte*>(device.data);
  std::uint32_t on_host = 0;
  MessageCount count_on_host;
  const auto refused = [&](auto change) {
    MessageEnd end = copy_end(bytes + 128, bytes, 64);
    end.count = counts;
    change(end);
    return kind().queue_messages({&end, 1}, kDevice0, stream).code();
  };
  EXPECT_EQ(refused([](MessageEnd& end) { end.size_bytes = 200; }), StatusCode::kOutOfRange);
  EXPECT_EQ(refused([](MessageEnd& end) { end.side = MessageSide::kSendPackets, end.size_bytes = 66; }),
            StatusCode::kOutOfRange);
  EXPECT_EQ(refused([&](MessageEnd& end) { end.num_places = 4, end.place_bytes = 22; }),
            StatusCode::kOutOfRange);
  EXPECT_EQ(
      refused([&](MessageEnd& end) { end.side = MessageSide::kTake, end.waits = words, end.num_places = 2; }),
      StatusCode::kOutOfRange);
  EXPECT_EQ(refused([&](MessageEnd& end) { end.labels = bytes + 248; }), StatusCode::kOutOfRange);
  EXPECT_EQ(refused([&](MessageEnd& end) { end.count = &count_on_host; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([&](MessageEnd& end) { end.freed = &on_host; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([&](MessageEnd& end) { end.signals = &on_host; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([&](MessageEnd& end) {
              end.side = MessageSide::kReceive, end.parts = 3, end.waits = words + 62;
            }),
            StatusCode::kOutOfRange);
  EXPECT_TRUE(memory.deallocate(device).ok());
}

// As at the end of a job: the peer is done with its memory, and this PE's receive waits.
TEST_F(EmulatedMessagesTest, AReceiveThatWaitsNeedsItsSignalNoMore) {
  const Buffer device = memory.allocate(64, kDevice0).value();
  const Buffer peers = memory.allocate(64, kDevice1).value();
  const StreamHandle stream = kind().create_stream(0).value();
  auto* const words = static_cast<std::uint32_t*>(device.data);
  auto* const view = static_cast<std::uint32_t*>(kind().device_view(device.data, 64).value());
  for (std::uint32_t i = 0; i < 16; ++i) view[i] = 0;
  MessageEnd receive;
  receive.side = MessageSide::kReceive;
  receive.count = static_cast<MessageCount*>(device.data);
  receive.waits = words + 2;
  receive.signals = static_cast<std::uint32_t*>(peers.data);
  ASSERT_TRUE(kind().queue_messages({&receive, 1}, kDevice0, stream).ok());
  Outcome over;
  ASSERT_TRUE(memory.when_queued_done(kDevice0, stream, &over).is_pending());
  for (int i = 0; i < 10; ++i) memory.progress();
  ASSERT_TRUE(memory.deallocate(peers).ok());
  for (int i = 0; i < 10; ++i) memory.progress();
  EXPECT_EQ(over.calls, 0) << over.status.to_string();
  view[2] = 1;
  until([&] { return over.calls == 1; });
  EXPECT_TRUE(over.status.ok()) << over.status.to_string();
  EXPECT_TRUE(memory.deallocate(device).ok());
}

// The end that has what it waits for is done, and the other one does nothing.
TEST_F(EmulatedMessagesTest, AnAbortEndsWhatWaits) {
  const Buffer device = memory.allocate(64, kDevice0).value();
  const StreamHandle stream = kind().create_stream(0).value();
  auto* const words = static_cast<std::uint32_t*>(device.data);
  auto* const view = static_cast<std::uint32_t*>(kind().device_view(device.data, 64).value());
  for (std::uint32_t i = 0; i < 16; ++i) view[i] = 0;
  view[8] = 77;
  MessageEnd free;
  auto* const counts = static_cast<MessageCount*>(device.data);
  free.count = counts;
  MessageEnd waits =
      copy_end(reinterpret_cast<std::byte*>(words + 9), reinterpret_cast<std::byte*>(words + 8), 4);
  waits.side = MessageSide::kReceive;
  waits.count = counts + 1;
  waits.waits = words + 4;
  const std::array<MessageEnd, 2> ends{free, waits};
  ASSERT_TRUE(kind().queue_messages(ends, kDevice0, stream).ok());
  Outcome over;
  ASSERT_TRUE(memory.when_queued_done(kDevice0, stream, &over).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(over.calls, 0);
  EXPECT_EQ(kind().activity(), KindBackend::Activity::kOnlyWaits);
  memory.abort_steps();
  until([&] { return over.calls == 1; });
  EXPECT_EQ(over.status.code(), StatusCode::kClosed);
  EXPECT_EQ(view[0], 1U);
  EXPECT_EQ(view[2], 0U);
  EXPECT_EQ(view[9], 0U);
  EXPECT_TRUE(memory.deallocate(device).ok());
}

}  // namespace
}  // namespace weft::memory
