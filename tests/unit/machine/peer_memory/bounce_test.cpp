// Messages into memory that the sender cannot map: through a bounce buffer, or pulled out of the sender's memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/busy_stream.h"
#include "tests/unit/machine/peer_memory/bounce_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;
using memory::Buffer;

TEST_P(BounceTest, MemoryThatCannotBeMappedIsReachedByABounceBuffer) {
  start();
  std::uint64_t messages = bounced(0);
  for (const std::size_t size_bytes : {1, 7, 8, 255, 256, 257, 511, 512, 513, 2048, 4095, 4096, 4097, 16383,
                                       16384, 16385, 65536, 1'000'003}) {
    SCOPED_TRACE(size_bytes);
    TestMemory from = refusing(0, size_bytes, 3);
    TestMemory to = refusing(1, size_bytes, 100);
    expect_message(0, from, to);
    EXPECT_EQ(bounced(0), ++messages);
  }
  EXPECT_EQ(pulled(0), 0u);
}

TEST_P(BounceTest, AnEmptyMessageTakesItsTag) {
  start();
  const std::uint64_t before = bounced(0);
  TestMemory from = refusing(0, 0);
  TestMemory to = refusing(1, 0);
  expect_message(0, from, to);
  EXPECT_EQ(bounced(0), before);
}

TEST_P(BounceTest, MemoryThatTheSenderCannotExportIsCopiedIntoMappedMemory) {
  start();
  const std::uint64_t before = copies(0);
  TestMemory from = refusing(0, 5000, 3);
  TestMemory to = used(1, 5000);
  expect_message(0, from, to);
  EXPECT_EQ(copies(0), before + 1);
  EXPECT_EQ(bounced(0), 0u);
}

TEST_P(BounceTest, MappableMemoryOfTheSenderIsPulled) {
  start();
  TestMemory from = mappable(0, 9000, 3);
  const std::uint64_t before = bounced(0);
  for (std::uint64_t i = 1; i < 4; ++i) {
    TestMemory to = refusing(1, 9000);
    expect_message(0, from, to);
    EXPECT_EQ(pulled(0), i);
  }
  EXPECT_EQ(bounced(0), before);
}

TEST_P(BounceTest, OtherDevicesAndPartsLandWhereTheyBelong) {
  start();
  const memory::Place other{kDevice.kind, 1};
  TestMemory out = refusing(0, 9000, 1, other);
  TestMemory in = refusing(1, 7000, 100, other);
  const Buffer from{static_cast<std::byte*>(out.buffer().data) + 1234, 5500, other, nullptr};
  const Buffer to{static_cast<std::byte*>(in.buffer().data) + 77, 5500, other, nullptr};
  const OutcomePtr received = receive(1, to);
  finish({received, send(0, from)});
  auto expected = in.filled();
  std::copy_n(out.filled().begin() + 1234, 5500, expected.begin() + 77);
  EXPECT_EQ(in.now(), expected);
  EXPECT_EQ(bounced(0), 1u);
}

TEST_P(BounceTest, TheReasonIsNamed) {
  start();
  TestMemory from = refusing(0, 100, 3);
  TestMemory to = refusing(1, 100);
  expect_message(0, from, to);
  const auto why = peer_memory(1).obstacles();
  ASSERT_EQ(why.size(), 1u);
  EXPECT_NE(why[0].find("in a way that other processes cannot map"), std::string::npos) << why[0];
}

TEST_P(BounceTest, WithoutABounceBufferMessagesTakeTheirTags) {
  start();
  TestMemory from = refusing(0, 100, 3);
  TestMemory to = refusing(1, 100);
  memory::EmulatedFaults faults;
  faults.fail_allocation = 1;
  testing::emulated(memory(1)).set_faults(faults);
  expect_message(0, from, to);
  expect_message(0, from, to);
  EXPECT_EQ(bounced(0), 0u);
  const auto why = peer_memory(1).obstacles();
  EXPECT_TRUE(std::ranges::any_of(
      why, [](const std::string& one) { return one.find("as the fault injection says") != one.npos; }));
}

TEST_P(BounceTest, ASmallerBounceBufferServesWhereMemoryIsScarce) {
  start();
  TestMemory from = refusing(0, 100, 3);
  TestMemory to = refusing(1, 100);
  peer_memory(1).set_bounce_bytes(std::size_t{64} << 20);
  memory::EmulatedFaults faults;
  faults.device_bytes = std::size_t{20} << 20;
  testing::emulated(memory(1)).set_faults(faults);
  expect_message(0, from, to);
  expect_message(0, from, to);
  EXPECT_GT(bounced(0), 0u);
}

TEST_P(BounceTest, StreamsComeFirst) {
  start();
  for (const bool can_pull : {false, true}) {
    SCOPED_TRACE(can_pull);
    TestMemory out = can_pull ? mappable(0, 6000, 1) : refusing(0, 6000, 1);
    TestMemory in = refusing(1, 6000, 100);
    bool may_receive = false;
    bool may_send = false;
    const auto behind = [&](std::size_t pe, const bool& may_go, const Buffer& buffer) {
      return testing::behind(testing::emulated(memory(pe)), testing::until(may_go), buffer);
    };
    in.buffer() = behind(1, may_receive, in.buffer());
    out.buffer() = behind(0, may_send, out.buffer());
    const OutcomePtr received = receive(1, in.buffer());
    settle();
    may_receive = true;
    settle();  // now it is posted
    const OutcomePtr sent = send(0, out.buffer());
    settle();
    EXPECT_EQ(in.now(), in.filled());
    EXPECT_FALSE(received->done || sent->done);
    // A message that waits for its stream holds up no other.
    TestMemory other_out = refusing(0, 6000, 77);
    TestMemory other_in = refusing(1, 6000);
    expect_message(0, other_out, other_in);
    may_send = true;
    finish({received, sent});
    EXPECT_EQ(in.now(), out.filled());
  }
}

TEST_P(BounceTest, AFailedCopyOfTheSenderEndsBothOperations) {
  start();
  for (const std::uint64_t failing : {1, 3, 5}) {
    SCOPED_TRACE(failing);
    TestMemory out = refusing(0, 20000, 1);
    TestMemory in = refusing(1, 20000, 100);
    const OutcomePtr received = receive(1, in.buffer());
    fail_copy(0, failing);
    const OutcomePtr sent = send(0, out.buffer());
    finish({received, sent});
    EXPECT_NE(sent->status.message().find("as the fault injection says"), std::string::npos);
    EXPECT_EQ(received->size_bytes, 0u) << "ended by the empty message";
    fail_copy(0, 0);
    TestMemory again = refusing(1, 20000, 100);
    expect_message(0, out, again);
  }
}

TEST_P(BounceTest, AFailedCopyOfTheReceiverFailsItsReceive) {
  start();
  for (const bool can_pull : {false, true}) {
    SCOPED_TRACE(can_pull);
    TestMemory out = can_pull ? mappable(0, 20000, 1) : refusing(0, 20000, 1);
    TestMemory in = refusing(1, 20000, 100);
    const OutcomePtr received = receive(1, in.buffer());
    fail_copy(1, can_pull ? 1 : 2);
    const OutcomePtr sent = send(0, out.buffer());
    finish({received, sent});
    EXPECT_TRUE(sent->status.ok());
    EXPECT_NE(received->status.message().find("as the fault injection says"), std::string::npos);
    EXPECT_EQ(received->size_bytes, 0u);
    fail_copy(1, 0);
    TestMemory again = refusing(1, 20000, 100);
    expect_message(0, out, again);
  }
}

TEST_P(BounceTest, AReceiverDoesNotSleepWhenAChunkIsThere) {
  start();
  TestMemory from = refusing(0, 100, 1);
  TestMemory to = refusing(1, 100, 100);
  expect_message(0, from, to);
  settle();
  const OutcomePtr received = receive(1, to.buffer());
  EXPECT_TRUE(peer_memory(1).before_sleep());
  const OutcomePtr sent = send(0, from.buffer());
  while (!sent->done) machine(0).progress();
  EXPECT_FALSE(peer_memory(1).before_sleep());
  finish({received});
  EXPECT_EQ(to.now(), from.filled());
}

TEST_P(BounceTest, AReceiveThatIsNotTakenCanBeCancelled) {
  start();
  TestMemory from = refusing(0, 100, 1);
  TestMemory to = refusing(1, 100, 100);
  const OutcomePtr received = receive(1, to.buffer());
  machine(1).cancel(received.get());
  finish({received});
  EXPECT_EQ(received->status.code(), StatusCode::kCancelled);
  send(0, from.buffer());
  settle();
  EXPECT_EQ(bounced(0), 0u);
  EXPECT_EQ(to.now(), to.filled());
}

TEST_P(BounceTest, AReceiveThatIsTakenIsNotCancelled) {
  start();
  TestMemory from = refusing(0, 50000, 1);
  TestMemory to = refusing(1, 50000, 100);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  for (int i = 0; i < 6; ++i) step();
  machine(1).cancel(received.get());
  finish({received, sent});
  EXPECT_TRUE(received->status.ok());
  EXPECT_EQ(to.now(), from.filled());
}

// A receiver that closes in the middle: what was not sent has ended on both sides.
TEST_P(BounceTest, AReceiverThatClosesEndsItsReceive) {
  start();
  TestMemory from = refusing(0, 1'000'000, 1);
  TestMemory to = refusing(1, 1'000'000, 100);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  for (int i = 0; i < 20; ++i) step();
  ASSERT_FALSE(received->done);
  close_pe(1);
  EXPECT_TRUE(received->done && received->status.failed());
  settle();
  close_pe(0);
  EXPECT_TRUE(sent->done && sent->status.failed());
}

TEST_P(BounceTest, ASenderThatClosesEndsItsSend) {
  start();
  TestMemory from = refusing(0, 1'000'000, 1);
  TestMemory to = refusing(1, 1'000'000, 100);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  close_pe(0);
  EXPECT_EQ(sent->status.code(), StatusCode::kClosed);
  settle();
  EXPECT_FALSE(received->done);
  close_pe(1);
  EXPECT_TRUE(received->done && received->status.failed());
}

TEST_P(BounceTest, AnOfferOfASenderThatHasClosedIsNotUsed) {
  start();
  TestMemory from = mappable(0, 100, 1);
  TestMemory to = refusing(1, 100, 100);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  close_pe(0);
  EXPECT_EQ(sent->status.code(), StatusCode::kClosed);
  settle();
  EXPECT_EQ(to.now(), to.filled());
  close_pe(1);
  EXPECT_TRUE(received->done && received->status.failed());
}

INSTANTIATE_TEST_SUITE_P(Machines, BounceTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::machine
