// Sends of memory that cannot be mapped, which come before their receives.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/support/within_a_minute.h"
#include "tests/unit/machine/peer_memory/bounce_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;

struct WaitingSendTest : BounceTest {
  // Both ends have seen memory that cannot be mapped.
  void start_bounced() {
    start();
    TestMemory from = refusing(0, 100, 3);
    TestMemory to = refusing(1, 100);
    expect_message(0, from, to);
    settle();
  }
  std::uint64_t others(std::size_t node) {
    return count(node, TransferPath::kStaged) + count(node, TransferPath::kThroughUcx);
  }
};

TEST_P(WaitingSendTest, LargeMessagesOfSlowMemoryWaitForTheirReceives) {
  start_bounced();
  const std::uint64_t before = others(0);
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  std::vector<OutcomePtr> all;
  for (std::uint8_t i = 0; i < 5; ++i) {
    out.push_back(refusing(0, 20000, static_cast<std::uint8_t>(50 * i + 1)));
    in.push_back(refusing(1, 20000));
    all.push_back(send(0, out.back().buffer()));
  }
  settle();
  EXPECT_TRUE(std::ranges::none_of(all, [](const OutcomePtr& one) { return one->done; }));
  for (TestMemory& one : in) all.push_back(receive(1, one.buffer()));
  finish(all);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(in[i].now(), out[i].filled()) << i;
  EXPECT_EQ(bounced(0), 6u);
  EXPECT_EQ(others(0), before);
}

TEST_P(WaitingSendTest, ASendBeginsWhileItsReceiverComputes) {
  start_bounced();  // with room for such a message
  TestMemory from = refusing(0, WaitingSends::kLeastBytes, 3);
  TestMemory to = refusing(1, WaitingSends::kLeastBytes);
  const OutcomePtr sent = send(0, from.buffer());
  const OutcomePtr received = receive(1, to.buffer());  // and PE 1 makes no progress
  for (int i = 0; i < 200; ++i) machine(0).progress();
  EXPECT_TRUE(sent->done);
  finish({sent, received});
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(bounced(0), 2u);
}

TEST_P(WaitingSendTest, SmallMessagesAndMappableMemoryDoNotWait) {
  start();
  TestMemory to = used(1, 20000);
  TestMemory from(memory(0), kDevice, 20000, 3);
  const std::uint64_t before = others(0);
  const OutcomePtr sent = send(0, from.buffer());
  settle();
  const OutcomePtr received = receive(1, to.buffer());
  finish({sent, received});
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(others(0), before + 1);
}

TEST_P(WaitingSendTest, MappableMemoryWaitsForAReceiverWhoseMemoryCannotBeMapped) {
  start();
  // The first message to such memory went with its tag, so the sender has found none of its receives.
  TestMemory first(memory(0), kDevice, 100, 3);
  TestMemory first_into = refusing(1, 100);
  const OutcomePtr sent_first = send(0, first.buffer());
  settle();
  finish({sent_first, receive(1, first_into.buffer())});
  const std::uint64_t before = others(0);
  TestMemory from(memory(0), kDevice, 20000, 5);
  TestMemory to = refusing(1, 20000);
  const OutcomePtr sent = send(0, from.buffer());
  settle();
  EXPECT_FALSE(sent->done);
  const OutcomePtr received = receive(1, to.buffer());
  finish({sent, received});
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(others(0), before);
}

TEST_P(WaitingSendTest, ASlowSourceIsCopiedIntoMemoryThatIsPostedLater) {
  start();
  TestMemory from = refusing(0, 20000, 3);
  TestMemory to = used(1, 20000);
  const std::uint64_t before = copies(0);
  const OutcomePtr sent = send(0, from.buffer());
  settle();
  const OutcomePtr received = receive(1, to.buffer());
  finish({sent, received});
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(WaitingSendTest, ReceivesThatAreNotPostedTakeTheTag) {
  start_bounced();
  const std::uint64_t before = others(0);
  TestMemory out = refusing(0, 20000, 1);
  // Host memory; a size that differs.
  TestMemory host(memory(1), {}, 20000);
  OutcomePtr sent = send(0, out.buffer());
  settle();
  OutcomePtr received = receive(1, host.buffer());
  finish({sent, received});
  EXPECT_EQ(host.now(), out.filled());
  EXPECT_EQ(incoming[1].held_sends, 0u);

  TestMemory larger = refusing(1, 30000);
  sent = send(0, out.buffer());
  settle();
  received = receive(1, larger.buffer());
  finish({sent, received});
  EXPECT_EQ(received->size_bytes, 20000u);
  EXPECT_EQ(others(0), before + 2);
  const auto why = peer_memory(0).obstacles();
  EXPECT_TRUE(std::ranges::any_of(
      why, [](const std::string& one) { return one.find("went by the transport's slow path") != one.npos; }));
}

TEST_P(WaitingSendTest, MemoryThatIsUsedForTheFirstTimeIsMappedForASlowSource) {
  start();
  const std::uint64_t before = copies(0);
  for (const bool is_posted : {false, true}) {
    TestMemory out = refusing(0, 20000, 1);
    TestMemory fresh(memory(1), kDevice, 20000);
    OutcomePtr received;
    if (is_posted) received = receive(1, fresh.buffer());
    const OutcomePtr sent = send(0, out.buffer());
    settle();
    if (!is_posted) received = receive(1, fresh.buffer());
    finish({sent, received});
    EXPECT_EQ(fresh.now(), out.filled());
  }
  EXPECT_EQ(copies(0), before + 2);
}

// The announcement of the send and the start of the receive cross.
TEST_P(WaitingSendTest, AReceiveThatStartsAtTheSameTimeIsFound) {
  start_bounced();
  for (const bool is_host : {false, true}) {
    for (int steps = 0; steps < 4; ++steps) {
      TestMemory out = refusing(0, 20000, static_cast<std::uint8_t>(steps));
      TestMemory in = is_host ? TestMemory(memory(1), {}, 20000) : refusing(1, 20000);
      const OutcomePtr sent = send(0, out.buffer());
      for (int i = 0; i < steps; ++i) machine(i % 2).progress();
      const OutcomePtr received = receive(1, in.buffer());
      finish({sent, received});
      EXPECT_EQ(in.now(), out.filled());
    }
  }
  EXPECT_EQ(incoming[1].held_sends, 0u);
}

TEST_P(WaitingSendTest, TheStreamsOfBothSidesComeFirst) {
  start_bounced();
  TestMemory out = refusing(0, 20000, 1);
  TestMemory in = refusing(1, 20000, 100);
  bool may_receive = false;
  bool may_send = false;
  out.buffer() = testing::behind(testing::emulated(memory(0)), testing::until(may_send), out.buffer());
  in.buffer() = testing::behind(testing::emulated(memory(1)), testing::until(may_receive), in.buffer());
  const OutcomePtr sent = send(0, out.buffer());
  settle();
  may_send = true;
  settle();
  const OutcomePtr received = receive(1, in.buffer());
  settle();
  EXPECT_FALSE(sent->done || received->done);
  may_receive = true;
  finish({sent, received});
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_EQ(bounced(0), 2u);
}

TEST_P(WaitingSendTest, ASendWhoseReceiveNeverComesEndsWithTheMachine) {
  start_bounced();
  TestMemory out = refusing(0, 20000, 1);
  const OutcomePtr sent = send(0, out.buffer());
  settle();
  EXPECT_FALSE(sent->done);
  close();
  EXPECT_EQ(sent->status.code(), StatusCode::kClosed);
}

TEST_P(WaitingSendTest, SendersWithTooManyAreAnswered) {
  start_bounced();
  auto& from = dynamic_cast<TransportMachine&>(machine(0));
  for (std::uint64_t number = 0; number < 5000; ++number) {
    const ControlMessage message{.type = ControlMessage::Type::kWaiting,
                                 .source_pe = 0,
                                 .number = incoming[1].next + number,
                                 .stream = incoming[1].name,
                                 .file = {}};
    Outcome announced;
    announced.started(
        from.transport_am_send(1, kPeerMemoryAmId, std::as_bytes(std::span(&message, 1)), {}, &announced), 0);
    ASSERT_TRUE(testing::within_a_minute([&] { return announced.done; }, [this] { step(); }));
  }
  settle();
  EXPECT_LE(incoming[1].held_sends, 4096u);
  EXPECT_GT(incoming[1].held_sends, 0u);
  TestMemory out = refusing(0, 20000, 1);
  TestMemory in = refusing(1, 20000);
  expect_message(0, out, in);
}

INSTANTIATE_TEST_SUITE_P(Machines, WaitingSendTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::machine
