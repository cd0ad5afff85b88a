// Host memory that the sending and the receiving PE copy together.
#include "machine/peer_memory/mapping/shared_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "machine/peer_memory/mapping/control_messages.h"
#include "tests/support/child_process.h"
#include "tests/support/within_a_minute.h"
#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;
using memory::Kind;

constexpr std::size_t kLarge = 1'000'003;

TEST(SharedCopyChunkTest, ChunksCoverTheMessageOnce) {
  for (const std::size_t size :
       {std::size_t{1}, SharedCopy::kLeastBytes, SharedCopy::kLeastBytes + 1, kLarge, std::size_t{1} << 40}) {
    std::size_t at = 0;
    std::uint64_t number = 0;
    for (SharedCopy::Chunk chunk; (chunk = SharedCopy::chunk(number, size)).size_bytes > 0; ++number) {
      EXPECT_EQ(chunk.offset_bytes, at);
      at += chunk.size_bytes;
    }
    EXPECT_EQ(at, size);
    EXPECT_EQ(SharedCopy::chunk(std::numeric_limits<std::uint64_t>::max(), size).size_bytes, 0u);
  }
}

// The parameter is the machine.
struct SharedCopyTest : PeerMemoryTest {
  TestMemory filled(std::size_t node, std::size_t size, std::uint8_t first) {
    return TestMemory(memory(node), memory::Place{}, size, first);
  }
  // The mailboxes are known: a first large receive has announced each.
  void start_shared() {
    connect();
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
      TestMemory from = filled(node, kLarge, 1);
      TestMemory to = filled(1 - node, kLarge, 2);
      const OutcomePtr received = receive(1 - node, to.buffer());
      finish({received, send(node, from.buffer())});
    }
    settle();
  }
  std::uint64_t shared(std::size_t node) { return count(node, TransferPath::kShared, Kind::kHost); }
  void progress(std::size_t node) {
    for (int i = 0; i < 200; ++i) machine(pe_of(node)).progress();
  }
};

TEST_P(SharedCopyTest, WhatIsPostedIsCopiedByBoth) {
  start_shared();
  const std::uint64_t before = shared(0);
  std::uint64_t messages = 0;
  for (const std::size_t size : {SharedCopy::kLeastBytes, SharedCopy::kLeastBytes + 1, kLarge, 5 * kLarge}) {
    TestMemory from = filled(0, size, 3);
    TestMemory to = filled(1, size, 4);
    const OutcomePtr received = receive(1, to.buffer());
    settle();
    const OutcomePtr sent = send(0, from.buffer());
    finish({received, sent});
    EXPECT_TRUE(received->status.ok() && sent->status.ok());
    EXPECT_EQ(received->size_bytes, size);
    EXPECT_TRUE(to.now() == from.filled()) << size;
    EXPECT_EQ(shared(0), before + ++messages);
  }
}

TEST_P(SharedCopyTest, AReceiverThatComputesLeavesAllToTheSender) {
  start_shared();
  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  progress(0);
  EXPECT_TRUE(sent->done);
  EXPECT_TRUE(to.now() == from.filled());
  finish({received});
}

TEST_P(SharedCopyTest, ASenderThatComputesLeavesAllToTheReceiver) {
  start_shared();
  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  progress(1);
  EXPECT_TRUE(received->done);
  EXPECT_TRUE(to.now() == from.filled());
  finish({sent});
}

TEST_P(SharedCopyTest, ManyInFlightKeepTheirOrder) {
  start_shared();
  std::vector<TestMemory> from;
  std::vector<TestMemory> to;
  std::vector<OutcomePtr> all;
  for (std::uint8_t i = 0; i < 150; ++i) {  // more than a mailbox has slots
    from.push_back(filled(0, SharedCopy::kLeastBytes + i, i));
    to.push_back(filled(1, SharedCopy::kLeastBytes + i, 0));
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    all.push_back(receive(1, to[i].buffer()));
    if (i % 3 == 0) step();
    all.push_back(send(0, from[i].buffer()));
  }
  finish(all);
  for (std::size_t i = 0; i < to.size(); ++i) EXPECT_TRUE(to[i].now() == from[i].filled()) << i;
}

TEST_P(SharedCopyTest, WhatIsNotPostedOrHasAnotherSizeTakesItsTag) {
  start_shared();
  const std::uint64_t before = shared(0);
  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  const OutcomePtr early = send(0, from.buffer());
  settle();
  const OutcomePtr late = receive(1, to.buffer());
  finish({early, late});
  EXPECT_TRUE(to.now() == from.filled());
  TestMemory smaller = filled(1, kLarge / 2, 4);
  const OutcomePtr truncated = receive(1, smaller.buffer());
  finish({truncated, send(0, from.buffer())});
  EXPECT_EQ(truncated->status.code(), StatusCode::kTruncated);
  EXPECT_EQ(shared(0), before);
}

TEST_P(SharedCopyTest, AnAddressThatThePeerDoesNotHaveSendsTheMessageWithItsTag) {
  start_shared();
  const std::uint64_t before = shared(0);
  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  const std::uint32_t number = incoming[1].next;
  const OutcomePtr received = receive(1, to.buffer());
  incoming[1].mailbox->slot(number).buffer.offset_bytes = 8;
  finish({received, send(0, from.buffer())});
  EXPECT_TRUE(to.now() == from.filled());
  EXPECT_EQ(shared(0), before);
  EXPECT_FALSE(peer_memory(0).obstacles().empty());
}

TEST_P(SharedCopyTest, AChunkThatTheReceiverCannotReadIsCopiedByTheSender) {
  start_shared();
  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  const std::uint32_t number = incoming[1].next;
  const OutcomePtr received = receive(1, to.buffer());
  const OutcomePtr sent = send(0, from.buffer());
  incoming[1].mailbox->slot(number).shared.source = 8;
  progress(1);
  EXPECT_FALSE(received->done);
  finish({received, sent});
  EXPECT_TRUE(received->status.ok() && sent->status.ok());
  EXPECT_TRUE(to.now() == from.filled());
}

TEST_P(SharedCopyTest, TurnedOffEverythingTakesItsTag) {
  start_shared();
  peer_memory(0).turn_off();
  const std::uint64_t before = shared(0);
  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  const OutcomePtr received = receive(1, to.buffer());
  finish({received, send(0, from.buffer())});
  EXPECT_TRUE(to.now() == from.filled());
  EXPECT_EQ(shared(0), before);
}

// PE 1 seems to be a process of its own, which can be killed: a child that has a copy of this process's memory at the same
// addresses. It copies nothing; the test takes chunks for it.
struct DyingReceiver : SharedCopyTest {
  void start_dying() {
    connect();
    mailboxes.emplace(MailboxFile::create().value());
    receiver.emplace();
    ControlMessage message{.type = ControlMessage::Type::kMailbox,
                           .source_pe = 1,
                           .number = 0,
                           .stream = outgoing[0].name,
                           .file = mailboxes->name()};
    message.file.file.pid = receiver->pid();
    auto& transport = dynamic_cast<TransportMachine&>(machine(1));
    Outcome told;
    told.started(
        transport.transport_am_send(0, kPeerMemoryAmId, std::as_bytes(std::span(&message, 1)), {}, &told), 0);
    const auto is_known = [&] {
      return told.done && peer_memory(0).plan_announced(1, outgoing[0].name, from.buffer(), true).waits;
    };
    ASSERT_TRUE(testing::within_a_minute(is_known, [this] { step(); }));
    MailboxSlot& slot = next_slot();
    slot.buffer = {.allocation_base = reinterpret_cast<std::uintptr_t>(to.buffer().data),
                   .size_bytes = kLarge,
                   .place = {}};
    slot.word.store(MailboxSlot::posted(outgoing[0].next));
  }
  MailboxSlot& next_slot() { return mailboxes->mailbox(0).slot(outgoing[0].next); }
  void expect_peer_failed(const Outcome& sent) {
    EXPECT_EQ(sent.status.code(), StatusCode::kPeerFailed) << sent.status.to_string();
    EXPECT_EQ(sent.size_bytes, 0u);
    progress(0);  // a second completion would fail the test
  }

  TestMemory from = filled(0, kLarge, 3);
  TestMemory to = filled(1, kLarge, 4);
  std::optional<MailboxFile> mailboxes;
  std::optional<testing::ChildProcess> receiver;
};

TEST_P(DyingReceiver, ASendEndsIfItsReceiverIsKilledWithTheLastChunks) {
  start_dying();
  SharedCopy& shared = next_slot().shared;
  const std::uint32_t number = outgoing[0].next;
  const OutcomePtr sent = send(0, from.buffer());
  while (shared.take(number, kLarge).size_bytes > 0) {
  }
  progress(0);
  EXPECT_FALSE(sent->done) << "the receiver lives and may copy its chunks";
  receiver->kill();
  finish({sent});
  expect_peer_failed(*sent);
}

TEST_P(DyingReceiver, ASendEndsIfItsReceiverIsKilledBeforeTheNextChunk) {
  start_dying();
  const OutcomePtr sent = send(0, from.buffer());
  EXPECT_FALSE(sent->done);
  receiver->kill();
  finish({sent});
  expect_peer_failed(*sent);
}

TEST_P(DyingReceiver, ASendEndsWellIfItsReceiverIsKilledAfterTheLastChunk) {
  start_dying();
  SharedCopy& shared = next_slot().shared;
  const std::uint32_t number = outgoing[0].next;
  const OutcomePtr sent = send(0, from.buffer());
  while (const std::size_t taken_bytes = shared.take(number, kLarge).size_bytes) shared.add(taken_bytes);
  receiver->kill();
  finish({sent});
  EXPECT_TRUE(sent->status.ok()) << sent->status.to_string();
}

INSTANTIATE_TEST_SUITE_P(Machines, DyingReceiver, ::testing::Values("loopback", "ucx"),
                         [](const auto& param) { return param.param; });
INSTANTIATE_TEST_SUITE_P(Machines, SharedCopyTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weft::machine
