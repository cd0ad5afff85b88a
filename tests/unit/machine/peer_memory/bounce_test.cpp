// Messages into memory that the sender cannot map: through a bounce buffer, or pulled out of the sender's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>

#include "machine/peer_memory/bounce_ring.h"
#include "tests/support/busy_stream.h"
#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::Status;
using base::StatusCode;
using memory::Buffer;

// Small, so that messages meet every boundary: chunks of 512 to 4096 bytes.
constexpr std::size_t kBounceBytes = 16384;

struct BounceTest : PeerMemoryTest {
  BounceTest() {
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
      peer_memory(node).set_bounce_bytes(kBounceBytes);
    }
  }
  // Memory that no other PE can map.
  TestMemory refusing(std::size_t node, std::size_t size_bytes, std::uint8_t first = 0,
                      memory::Place place = kDevice) {
    auto& kind = testing::emulated(memory(node));
    memory::EmulatedFaults faults;
    faults.refuse_exports = true;
    kind.set_faults(faults);
    TestMemory made(memory(node), place, size_bytes, first);
    kind.set_faults({});
    return made;
  }
  // Memory of the node that has been used before, so that other PEs may map it.
  TestMemory mappable(std::size_t node, std::size_t size_bytes, std::uint8_t first = 0) {
    TestMemory from(memory(node), kDevice, size_bytes, first);
    TestMemory to = refusing(1 - node, size_bytes);
    const OutcomePtr received = receive(1 - node, to.buffer());
    finish({received, send(node, from.buffer())});
    return from;
  }
  void expect_message(std::size_t node, TestMemory& from, TestMemory& to) {
    const OutcomePtr received = receive(1 - node, to.buffer());
    const OutcomePtr sent = send(node, from.buffer());
    finish({received, sent});
    EXPECT_TRUE(sent->status.ok()) << sent->status.to_string();
    EXPECT_TRUE(received->status.ok()) << received->status.to_string();
    EXPECT_EQ(sent->size_bytes, from.filled().size());
    EXPECT_EQ(received->size_bytes, from.filled().size());
    EXPECT_EQ(to.now(), from.filled());
  }
  void fail_copy(std::size_t node, std::uint64_t number) {
    memory::EmulatedFaults faults;
    faults.fail_copy = number;
    testing::emulated(memory(node)).set_faults(faults);
  }
  std::uint64_t bounced(std::size_t node) { return count(node, TransferPath::kBounced); }
  std::uint64_t pulled(std::size_t node) { return count(node, TransferPath::kPulled); }
};

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

// --- Sends that come before their receives

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
    for (int i = 0; i < 10'000 && !announced.done; ++i) step();
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

// --- What a peer writes is checked.

struct DamagedBounce : BounceTest {
  // The ring of messages from PE 0 to device 0 of PE 1, the first one that PE 1 has made.
  BounceRing& ring() const {
    auto* const mailboxes = reinterpret_cast<std::byte*>(incoming[1].mailbox);
    return *reinterpret_cast<BounceRing*>(mailboxes + kMailboxes * sizeof(Mailbox));
  }
  // Sends the 100 bytes of `from`. The entry is changed before the receiver has seen it.
  template <class Damage>
  void send_damaged(TestMemory& from, Damage damage) {
    TestMemory to = refusing(1, 100, 100);
    received = receive(1, to.buffer());
    settle();
    sent = send(0, from.buffer());
    BounceEntry& entry = ring().entry(next);
    for (int i = 0; i < 1000 && entry.word.load() != BounceEntry::filled(next); ++i) machine(0).progress();
    ASSERT_EQ(entry.word.load(), BounceEntry::filled(next));
    damage(entry);
    finish({received, sent});
    settle();
    contents = to.now();
    unchanged = to.filled();
    ++next;
  }

  std::uint64_t next = 0;
  OutcomePtr received;
  OutcomePtr sent;
  std::vector<std::uint8_t> contents;
  std::vector<std::uint8_t> unchanged;
};

TEST_P(DamagedBounce, ChunksThatCannotBeFailTheReceive) {
  start();
  TestMemory from = refusing(0, 100, 1);
  const std::array<void (*)(BounceEntry&), 7> damages{
      [](BounceEntry& entry) { entry.message_offset_bytes = 1; },
      [](BounceEntry& entry) { entry.message_offset_bytes = ~std::uint64_t{0}; },
      [](BounceEntry& entry) { entry.size_bytes = 101; },
      [](BounceEntry& entry) { entry.size_bytes = 0; },
      [](BounceEntry& entry) { entry.bounce_offset_bytes = kBounceBytes - 99; },
      [](BounceEntry& entry) { entry.bounce_offset_bytes = ~std::uint64_t{0} - 50; },
      [](BounceEntry& entry) {
        entry.type = BounceEntry::Type::kSource;
        entry.source.size_bytes = 1000;
      }};
  for (const auto damage : damages) {
    send_damaged(from, damage);
    EXPECT_EQ(received->status.code(), StatusCode::kCorrupt);
    EXPECT_EQ(contents, unchanged);
  }
  TestMemory to = refusing(1, 100);
  expect_message(0, from, to);
}

TEST_P(DamagedBounce, SourcesThatCannotBeMappedAreBounced) {
  start();
  TestMemory from = mappable(0, 100, 1);  // its first message takes entry 0
  next = 1;
  send_damaged(from, [](BounceEntry& entry) {
    entry.source.export_number = 1'000'000;
    for (std::byte& byte : entry.exported) byte = std::byte{0xab};
  });
  EXPECT_TRUE(received->status.ok() && sent->status.ok());
  EXPECT_EQ(contents, from.filled());
}

TEST_P(DamagedBounce, ABounceBufferThatCannotBeIsNotWrittenTo) {
  start();
  TestMemory from = refusing(0, 100, 1);
  TestMemory to = refusing(1, 100, 100);
  const OutcomePtr received = receive(1, to.buffer());
  settle();
  ring().buffer.size_bytes = 100;
  const OutcomePtr sent = send(0, from.buffer());
  finish({received, sent});
  EXPECT_TRUE(received->status.ok() && sent->status.ok());
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(bounced(0), 0u);
}

TEST_P(DamagedBounce, ABounceBufferThatLeavesItsAllocationFailsTheSend) {
  start();
  TestMemory from = refusing(0, 100, 1);
  TestMemory to = refusing(1, 100, 100);
  const OutcomePtr received = receive(1, to.buffer());
  settle();
  ring().buffer.offset_bytes = 1;
  const OutcomePtr sent = send(0, from.buffer());
  finish({received, sent});
  EXPECT_EQ(sent->status.code(), StatusCode::kCorrupt);
  EXPECT_EQ(to.now(), to.filled());
}

TEST_P(DamagedBounce, ARingThatDoesNotExistTakesTheTag) {
  start();
  TestMemory from = refusing(0, 100, 1);
  TestMemory to = refusing(1, 100, 100);
  const std::uint32_t number = outgoing[0].next;
  const OutcomePtr received = receive(1, to.buffer());
  settle();
  incoming[1].mailbox->slot(number).buffer.offset_bytes = kBounceRings;
  const OutcomePtr sent = send(0, from.buffer());
  finish({received, sent});
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(bounced(0), 0u);
}

INSTANTIATE_TEST_SUITE_P(Machines, DamagedBounce, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

// --- Everything at once

struct BounceMix : BounceTest {
  struct Side {
    std::vector<TestMemory> memory;  // of each kind of allocation one; messages use its parts
    std::vector<Buffer> buffers;
    std::vector<OutcomePtr> outcomes;
  };
};

TEST_P(BounceMix, EveryByteArrivesFromAndToAnyMemory) {
  start(0xffffffc0u);
  constexpr std::size_t kMessages = 500;
  constexpr std::size_t kMaxBytes = 40000;
  constexpr std::array<std::size_t, 12> kSizes{0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 16384, 16385, 39999};
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < kMessages; ++i) {
      sizes.push_back(random() % 2 == 0 ? kSizes[random() % kSizes.size()] : random() % kMaxBytes);
    }
    std::array<std::vector<memory::StreamHandle>, 2> streams;
    const auto make_side = [&](std::size_t pe, std::uint8_t first) {
      Side side;
      side.memory.emplace_back(memory(pe), memory::Place{}, kMessages * kMaxBytes, first);
      side.memory.emplace_back(memory(pe), kDevice, kMessages * kMaxBytes, first);
      side.memory.push_back(refusing(pe, kMessages * kMaxBytes, first));
      side.memory.push_back(refusing(pe, kMessages * kMaxBytes, first, {kDevice.kind, 1}));
      for (const int device : {0, 0, 1, 1}) {
        streams[pe].push_back(testing::emulated(memory(pe)).create_stream(device).value());
      }
      return side;
    };
    std::array<Side, 2> sides{make_side(0, static_cast<std::uint8_t>(seed)), make_side(1, 0)};
    const auto begin = [&](std::size_t pe) {
      Side& side = sides[pe];
      const std::size_t i = side.buffers.size();
      if (i == kMessages) return;
      const std::size_t which = random() % 8 == 0 ? 0 : 1 + random() % 3;
      Buffer part = side.memory[which].buffer();
      part.data = static_cast<std::byte*>(part.data) + i * kMaxBytes;
      part.size_bytes = sizes[i];
      if (which != 0 && random() % 3 == 0) {
        part.stream = streams[pe][static_cast<std::size_t>(part.place.device) * 2 + random() % 2];
      }
      side.buffers.push_back(part);
      side.outcomes.push_back(pe == 0 ? send(0, part) : receive(1, part));
    };
    const auto is_over = [](const Side& side) {
      return side.outcomes.size() == kMessages &&
             std::ranges::all_of(side.outcomes, [](const OutcomePtr& outcome) { return outcome->done; });
    };
    for (int turn = 0; (!is_over(sides[0]) || !is_over(sides[1])) && turn < 200'000; ++turn) {
      for (const std::size_t pe : {std::size_t{1}, std::size_t{0}}) {
        for (int starts = static_cast<int>(random() % 30); starts > 0; --starts) begin(pe);
      }
      for (int steps = static_cast<int>(random() % 8); steps > 0; --steps) step();
    }
    ASSERT_TRUE(is_over(sides[0]) && is_over(sides[1])) << "an operation hangs";
    for (std::size_t i = 0; i < kMessages; ++i) {
      const Status& status = sides[1].outcomes[i]->status;
      ASSERT_TRUE(status.ok()) << status.to_string();
      ASSERT_EQ(testing::contents(memory(1), sides[1].buffers[i]),
                testing::contents(memory(0), sides[0].buffers[i]))
          << i;
    }
    for (const std::size_t pe : {std::size_t{0}, std::size_t{1}}) {
      for (const memory::StreamHandle stream : streams[pe]) {
        EXPECT_TRUE(testing::emulated(memory(pe)).destroy_stream(stream).ok());
      }
    }
  }
  EXPECT_GT(copies(0), 30u);
  EXPECT_GT(bounced(0), 30u);
  EXPECT_GT(pulled(0), 30u);
  EXPECT_GT(count(0, TransferPath::kStaged), 30u);
}

INSTANTIATE_TEST_SUITE_P(Machines, BounceMix, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::machine
