// What a peer writes into a mailbox, or says about one, is checked.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>

#include "machine/peer_memory/mapping/control_messages.h"
#include "tests/support/within_a_minute.h"
#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;

struct DamagedMailbox : PeerMemoryTest {
  // Posts a message of PE 0 as PE 1 never would.
  template <class Damage>
  void send_into(Damage damage) {
    TestMemory from(memory(0), kDevice, 100, 1);
    TestMemory to = used(1, 100, 100);
    const std::uint32_t number = outgoing[0].next;
    received = receive(1, to.buffer());
    MailboxSlot& slot = incoming[1].mailbox->slot(number);
    ASSERT_EQ(slot.word.load(), MailboxSlot::posted(number));
    damage(slot);
    sent = send(0, from.buffer());
    finish({received, sent});
    contents = to.now();
    expected = from.filled();
    unchanged = to.filled();
  }
  OutcomePtr received;
  OutcomePtr sent;
  std::vector<std::uint8_t> contents;
  std::vector<std::uint8_t> expected;
  std::vector<std::uint8_t> unchanged;
};

TEST_P(DamagedMailbox, NothingOutsideOfTheAllocationIsWritten) {
  start();
  const std::uint64_t before = copies(0);
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{100}, ~std::uint64_t{0} - 50}) {
    send_into([&](MailboxSlot& slot) { slot.buffer.offset_bytes = offset; });
    EXPECT_EQ(sent->status.code(), StatusCode::kCorrupt);
    EXPECT_NE(sent->status.message().find("PE 0 to PE 1: a peer posted 100 bytes at offset"),
              std::string_view::npos)
        << sent->status.to_string();
    EXPECT_EQ(contents, unchanged);
  }
  EXPECT_EQ(copies(0), before);
  exchange(0, 100);  // the stream goes on
}

TEST_P(DamagedMailbox, WhatNamesNoAllocationTakesItsTag) {
  start();
  const std::uint64_t before = copies(0);
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    send_into([&](MailboxSlot& slot) {
      slot.buffer.export_number = 1'000'000 + seed;
      if (seed % 3 == 0) slot.buffer.exported_bytes = 0xffffffffu;
      if (seed % 3 == 1) slot.buffer.place.device = -5;
      slot.buffer.allocation_base = random();
      for (std::byte& byte : slot.exported) byte = static_cast<std::byte>(random());
    });
    EXPECT_TRUE(sent->status.ok() && received->status.ok());
    EXPECT_EQ(contents, expected);
  }
  EXPECT_EQ(copies(0), before);
}

TEST_P(DamagedMailbox, AKindThatDoesNotExistTakesItsTag) {
  start();
  const std::uint64_t before = copies(0);
  send_into([&](MailboxSlot& slot) {
    slot.buffer.export_number = 1'000'000;
    slot.buffer.place.kind = static_cast<memory::Kind>(200);
  });
  EXPECT_TRUE(sent->status.ok() && received->status.ok());
  EXPECT_EQ(contents, expected);
  EXPECT_EQ(copies(0), before);
}

TEST_P(DamagedMailbox, APeerThatCannotOpenItIsPostedToNoMore) {
  connect();
  // As if PE 1 were on another host: the name of a file that is not there.
  const ControlMessage message{.type = ControlMessage::Type::kMailbox,
                               .source_pe = 1,
                               .number = 0,
                               .stream = incoming[1].name,
                               .file = {{1, 2, -3, 4}, 5}};
  auto& from = dynamic_cast<TransportMachine&>(machine(1));
  Outcome announced;
  announced.started(
      from.transport_am_send(0, kPeerMemoryAmId, std::as_bytes(std::span(&message, 1)), {}, &announced), 0);
  EXPECT_TRUE(
      testing::within_a_minute([this] { return !peer_memory(0).obstacles().empty(); }, [this] { step(); }));
  ASSERT_EQ(peer_memory(0).obstacles().size(), 1u);
  settle();
  for (int i = 0; i < 3; ++i) exchange(0, 1000);
  EXPECT_EQ(copies(0), 0u);
  EXPECT_EQ(incoming[1].mailbox, nullptr);
  exchange(1, 1000);
  exchange(1, 1000);
  EXPECT_GT(copies(1), 0u) << "the other direction has another mailbox";
}

// A message of any bytes is dropped, or has no effect beyond its stream.
TEST_P(DamagedMailbox, MessagesOfAnyBytesDoNoHarm) {
  start();
  auto& from = dynamic_cast<TransportMachine&>(machine(1));
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 200; ++i) {
      ControlMessage message;
      auto bytes = std::as_writable_bytes(std::span(&message, 1));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 3);
      if (i % 2 == 0) message.source_pe = 1;
      const std::size_t size_bytes = i % 4 == 3 ? random() % bytes.size() : bytes.size();
      Outcome sent_message;
      sent_message.started(
          from.transport_am_send(0, kPeerMemoryAmId, bytes.first(size_bytes), {}, &sent_message), 0);
      ASSERT_TRUE(testing::within_a_minute([&] { return sent_message.done; }, [this] { step(); }));
    }
  }
  settle();
  exchange(1, 100);
}

INSTANTIATE_TEST_SUITE_P(Machines, DamagedMailbox, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::machine
