// What a peer writes into a bounce ring is checked before it is used.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "machine/peer_memory/mapping/bounce_ring.h"
#include "tests/unit/machine/peer_memory/bounce_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;

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

}  // namespace
}  // namespace weft::machine
