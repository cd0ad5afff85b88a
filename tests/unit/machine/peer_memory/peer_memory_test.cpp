// Peer memory between two PEs: which messages are copied and which go with their tags, order, streams,
// failure, sleep and close.
#include "machine/peer_memory/peer_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/busy_stream.h"
#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::Status;
using base::StatusCode;
using memory::Buffer;
using memory::Place;

TEST_P(PeerMemoryTest, WhatIsPostedIsCopied) {
  start();
  const std::uint64_t before = copies(0);
  for (const std::size_t size_bytes : {1, 8, 4097, 1'000'000}) exchange(0, size_bytes);
  EXPECT_EQ(copies(0), before + 4);
}

TEST_P(PeerMemoryTest, WhatIsNotPostedTakesItsTagAndOrderIsKept) {
  start();
  const std::uint64_t before = copies(0);
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  for (std::uint8_t i = 0; i < 4; ++i) {
    out.emplace_back(memory(0), kDevice, 5000, static_cast<std::uint8_t>(50 * i + 1));
    in.push_back(used(1, 5000));
  }
  std::vector<OutcomePtr> all;
  all.push_back(receive(1, in[0].buffer()));
  all.push_back(receive(1, in[1].buffer()));
  for (TestMemory& one : out) all.push_back(send(0, one.buffer()));
  all.push_back(receive(1, in[2].buffer()));
  all.push_back(receive(1, in[3].buffer()));
  finish(all);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(in[i].now(), out[i].filled()) << i;
  EXPECT_EQ(copies(0), before + 2);
}

TEST_P(PeerMemoryTest, PartsOfAllocationsLandWhereTheyBelong) {
  start();
  const std::uint64_t before = copies(0);
  TestMemory out(memory(0), kDevice, 3000, 1);
  TestMemory in = used(1, 2000, 100);
  const Buffer from{static_cast<std::byte*>(out.buffer().data) + 1234, 500, kDevice, nullptr};
  const Buffer to{static_cast<std::byte*>(in.buffer().data) + 77, 500, kDevice, nullptr};
  const OutcomePtr received = receive(1, to);
  finish({received, send(0, from)});
  auto expected = in.filled();
  std::copy_n(out.filled().begin() + 1234, 500, expected.begin() + 77);
  EXPECT_EQ(in.now(), expected);
  EXPECT_EQ(received->size_bytes, 500u);
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(PeerMemoryTest, StreamsComeFirst) {
  start();
  const std::uint64_t before = copies(0);
  TestMemory out(memory(0), kDevice, 64, 1);
  TestMemory in = used(1, 64, 100);
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
  may_send = true;
  finish({received, sent});
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(PeerMemoryTest, ASendThatWaitsForItsStreamLooksAgain) {
  start();
  for (const bool is_posted : {true, false}) {
    const std::uint64_t before = copies(0);
    TestMemory out(memory(0), kDevice, 64, 1);
    TestMemory in = used(1, 64, 100);
    bool may_send = false;
    auto& kind = testing::emulated(memory(0));
    out.buffer() = testing::behind(kind, testing::until(may_send), out.buffer());
    const OutcomePtr sent = send(0, out.buffer());
    OutcomePtr received;
    if (is_posted) received = receive(1, in.buffer());
    settle();
    may_send = true;
    settle();
    if (!is_posted) received = receive(1, in.buffer());
    finish({received, sent});
    EXPECT_EQ(in.now(), out.filled());
    EXPECT_EQ(copies(0), before + (is_posted ? 1 : 0));
  }
}

TEST_P(PeerMemoryTest, ASendThatWaitsForItsStreamEndsWithTheMachine) {
  start();
  TestMemory out(memory(0), kDevice, 64, 1);
  bool may_send = false;
  out.buffer() = testing::behind(testing::emulated(memory(0)), testing::until(may_send), out.buffer());
  const OutcomePtr sent = send(0, out.buffer());
  settle();
  EXPECT_FALSE(sent->done);
  close();
  EXPECT_EQ(sent->status.code(), StatusCode::kClosed);
  may_send = true;
}

TEST_P(PeerMemoryTest, OtherSizesTakeTheirTag) {
  start();
  TestMemory out(memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 60, 100);
  const OutcomePtr received = receive(1, in.buffer());
  finish({received, send(0, out.buffer())});
  EXPECT_EQ(received->status.code(), StatusCode::kTruncated);
  EXPECT_EQ(in.now(), in.filled());
  exchange(0, 100);  // the stream goes on
}

TEST_P(PeerMemoryTest, HostMemoryOnEitherSideTakesItsTag) {
  start();
  const std::uint64_t before = copies(0);
  for (const auto& [from, to] : {std::pair{Place(), kDevice}, std::pair{kDevice, Place()}}) {
    TestMemory out(memory(0), from, 9000, 1);
    TestMemory in = to.is_host() ? TestMemory(memory(1), to, 9000) : used(1, 9000);
    const OutcomePtr received = receive(1, in.buffer());
    finish({received, send(0, out.buffer())});
    EXPECT_EQ(in.now(), out.filled());
  }
  exchange(0, 10);
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(PeerMemoryTest, TurnedOffNothingIsCopied) {
  for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) peer_memory(node).turn_off();
  start();
  exchange(0, 100);
  exchange(1, 100);
  EXPECT_EQ(copies(0) + copies(1), 0u);
}

TEST_P(PeerMemoryTest, MemoryThatIsUsedOnceIsNotMapped) {
  start();
  const std::uint64_t before = copies(0);
  for (int i = 0; i < 5; ++i) static_cast<void>(used(1, 100));
  EXPECT_EQ(copies(0), before);
}

TEST_P(PeerMemoryTest, FreedBuffersAreMappedAnew) {
  start();
  const std::uint64_t before = copies(0);
  for (int i = 0; i < 50; ++i) exchange(0, 5000);
  EXPECT_EQ(copies(0), before + 50);
}

TEST_P(PeerMemoryTest, AFailedCopyEndsBothOperations) {
  start();
  TestMemory out(memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100, 100);
  const OutcomePtr received = receive(1, in.buffer());
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  testing::emulated(memory(0)).set_faults(faults);
  const OutcomePtr sent = send(0, out.buffer());
  finish({received, sent});
  EXPECT_TRUE(sent->status.failed());
  EXPECT_NE(sent->status.message().find("as the fault injection says"), std::string::npos);
  EXPECT_EQ(received->size_bytes, 0u) << "ended by the empty message";
  exchange(0, 100);
}

TEST_P(PeerMemoryTest, AnIdleStreamIsNotWaitedFor) {
  start();
  auto& kind = testing::emulated(memory(1));
  TestMemory out(memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100);
  in.buffer().stream = kind.create_stream(0).value();
  const std::uint64_t before = copies(0);
  // Nothing is polled between the two calls, so the receive is posted only if its stream is seen to be idle.
  const OutcomePtr received = receive(1, in.buffer());
  const OutcomePtr sent = send(0, out.buffer());
  EXPECT_EQ(copies(0), before + 1);
  finish({received, sent});
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_TRUE(kind.destroy_stream(in.buffer().stream).ok());
}

TEST_P(PeerMemoryTest, AStreamThatFailedEndsBothOperations) {
  start();
  auto& kind = testing::emulated(memory(0));
  for (const bool is_posted : {true, false}) {
    TestMemory out(memory(0), kDevice, 100, 1);
    TestMemory in = used(1, 100, 100);
    out.buffer().stream = kind.create_stream(0).value();
    OutcomePtr received;
    if (is_posted) received = receive(1, in.buffer());
    ASSERT_TRUE(
        kind.launch(out.buffer().stream, 0, [] { return Status(StatusCode::kInternal, "bad work"); }).ok());
    const OutcomePtr sent = send(0, out.buffer());
    settle();
    if (!is_posted) received = receive(1, in.buffer());
    finish({received, sent});
    EXPECT_NE(sent->status.message().find("bad work"), std::string::npos) << sent->status.to_string();
    EXPECT_EQ(received->size_bytes, 0u);
    EXPECT_EQ(in.now(), in.filled());
    exchange(0, 100);
    destroy_streams(0, {out.buffer().stream});
  }
}

// tests/multiproc has receivers that sleep in fact, and are woken.
TEST_P(PeerMemoryTest, AReceiverDoesNotSleepWhenTheBytesAreThere) {
  start();
  TestMemory from(memory(0), kDevice, 100, 1);
  TestMemory to = used(1, 100, 100);
  settle();  // the tagged half of the last receive is withdrawn
  const OutcomePtr received = receive(1, to.buffer());
  EXPECT_TRUE(peer_memory(1).before_sleep());
  const OutcomePtr sent = send(0, from.buffer());
  while (!sent->done) machine(0).progress();
  EXPECT_FALSE(peer_memory(1).before_sleep());
  finish({received});
  EXPECT_EQ(to.now(), from.filled());
}

TEST_P(PeerMemoryTest, ReceivesThatNothingServesEndWithTheMachine) {
  start();
  TestMemory to = used(1, 100, 100);
  const OutcomePtr received = receive(1, to.buffer());
  close_pe(1);
  EXPECT_TRUE(received->done && received->status.failed());
  // The posting was withdrawn: nothing is written any more.
  TestMemory from(memory(0), kDevice, 100, 1);
  const std::uint64_t before = copies(0);
  send(0, from.buffer());
  settle();
  EXPECT_EQ(copies(0), before);
  EXPECT_EQ(to.now(), to.filled());
}

TEST_P(PeerMemoryTest, AReceiveCanBeCancelled) {
  start();
  TestMemory from(memory(0), kDevice, 100, 1);
  TestMemory to = used(1, 100, 100);
  const OutcomePtr received = receive(1, to.buffer());
  machine(1).cancel(received.get());
  finish({received});
  EXPECT_EQ(received->status.code(), StatusCode::kCancelled);
  const std::uint64_t before = copies(0);
  send(0, from.buffer());
  settle();
  EXPECT_EQ(copies(0), before);
  EXPECT_EQ(to.now(), to.filled());
}

TEST_P(PeerMemoryTest, ACopyUnderWayEndsBeforeTheMachineIsClosed) {
  start();
  TestMemory from(memory(0), kDevice, 1'000'000, 1);
  TestMemory to = used(1, 1'000'000, 100);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  EXPECT_FALSE(sent->done);
  close_pe(0);
  EXPECT_TRUE(sent->done && sent->status.ok()) << sent->status.to_string();
  finish({received});
  EXPECT_EQ(to.now(), from.filled());
}

// Whatever comes first, from and to whatever memory, more in flight than there are slots, counters wrapping.
TEST_P(PeerMemoryTest, ManyMessagesOfEachKindKeepTheirOrder) {
  start(0xffffffc0u);
  constexpr std::size_t kMessages = 600;
  constexpr std::size_t kMaxBytes = 6000;
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < kMessages; ++i) sizes.push_back(1 + random() % kMaxBytes);
    const auto make_side = [&](std::size_t pe, std::uint8_t first) {
      Side side;
      side.allocations.emplace_back(memory(pe), Place(), kMessages * kMaxBytes, first);
      side.allocations.emplace_back(memory(pe), kDevice, kMessages * kMaxBytes, first);
      return side;
    };
    std::array<Side, 2> sides{make_side(0, static_cast<std::uint8_t>(seed)), make_side(1, 0)};
    const auto begin = [&](std::size_t pe) {
      Side& side = sides[pe];
      const std::size_t i = side.buffers.size();
      if (i == kMessages) return;
      Buffer part = side.allocations[random() % 4 == 0 ? 0 : 1].buffer();
      part.data = static_cast<std::byte*>(part.data) + i * kMaxBytes;
      part.size_bytes = sizes[i];
      side.buffers.push_back(part);
      side.outcomes.push_back(pe == 0 ? send(0, part) : receive(1, part));
    };
    while (!sides[0].is_over(kMessages) || !sides[1].is_over(kMessages)) {
      for (const std::size_t pe : {std::size_t{1}, std::size_t{0}}) {
        for (int starts = static_cast<int>(random() % 90); starts > 0; --starts) begin(pe);
      }
      for (int steps = static_cast<int>(random() % 8); steps > 0; --steps) step();
    }
    expect_equal(sides);
  }
  EXPECT_GT(copies(0), 100u);
  EXPECT_GT(count(0, TransferPath::kStaged), 100u);
}

INSTANTIATE_TEST_SUITE_P(Machines, PeerMemoryTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

// Counters wrap, so an outcome may be there from four billion messages ago.
TEST_P(PeerMemoryTest, AnOldOutcomeIsNotTakenForThisMessages) {
  start();
  TestMemory out(memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100, 100);
  const IncomingStream& stream = incoming[1];
  stream.mailbox->slot(stream.next).outcome.store(MailboxSlot::done(stream.next));
  const OutcomePtr received = receive(1, in.buffer());
  settle();
  EXPECT_FALSE(received->done);
  finish({received, send(0, out.buffer())});
  EXPECT_EQ(in.now(), out.filled());
}

// --- where it does not apply

TEST(PeerMemoryApart, PesOfOtherHostsAreNotCopiedTo) {
  PeerPair pair(2, "ucx-apart");
  pair.start();
  pair.exchange(0, 1000);
  EXPECT_EQ(pair.copies(0), 0u);
  EXPECT_EQ(pair.incoming[1].mailbox, nullptr);
}

TEST(PeerMemoryStaged, NothingIsCopied) {
  for (const int num_pes : {1, 2}) {
    PeerPair pair(num_pes, "loopback", StagingMode::kHost);
    pair.start();
    pair.exchange(0, 1000);
    EXPECT_EQ(pair.copies(0) + pair.count(0, TransferPath::kOwnPe), 0u);
    EXPECT_GT(pair.count(0, TransferPath::kStaged), 0u);
  }
}

}  // namespace
}  // namespace weft::machine
