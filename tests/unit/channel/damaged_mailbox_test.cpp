// What a peer writes into a mailbox, or says about one, is checked.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/channel/direct_path_pair.h"

namespace weft::channel {
namespace {

using testing::InProcessJob;
using testing::TestMemory;

struct DamagedMailbox : DirectPathTest {
  // Posts message `counter` of PE 0's sends as PE 1 never would.
  template <class Damage>
  void send_into(Damage damage) {
    TestMemory out(job.memory(0), kDevice, 100, 1);
    TestMemory in = used(1, 100, 100);
    const std::uint32_t counter = job.runtime(0).model<Channels>().find(1)->next_send;
    const OutcomePtr received = receive(1, in.buffer());
    Slot& slot = job.runtime(1).model<Channels>().find(1)->direct.inbox->slot(counter);
    ASSERT_EQ(slot.word.load(), Slot::posted(counter));
    damage(slot);
    const OutcomePtr sent = send(0, out.buffer());
    failure = job.run_until([&] { return received->done && sent->done; });
    contents = in.now();
    expected = out.filled();
  }
  std::string failure;
  std::vector<std::uint8_t> contents;
  std::vector<std::uint8_t> expected;
};

TEST_P(DamagedMailbox, PlacesOutsideOfTheAllocationEndTheJob) {
  start();
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{100}, ~std::uint64_t{0} - 50}) {
    send_into([&](Slot& slot) { slot.posting.offset_bytes = offset; });
    EXPECT_NE(failure.find("which cannot be"), std::string::npos) << failure;
    EXPECT_NE(failure.find("Node[0] - "), std::string::npos) << failure;
    break;  // the job is over
  }
}

TEST_P(DamagedMailbox, WhatNamesNoAllocationTakesItsTag) {
  start();
  const std::uint64_t before = copies(0);
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    send_into([&](Slot& slot) {
      slot.posting.export_number = 1'000'000 + seed;
      if (seed % 3 == 0) slot.posting.exported_bytes = 0xffffffffu;
      if (seed % 3 == 1) slot.posting.place.device = -5;
      slot.posting.allocation_base = random();
      for (std::byte& byte : slot.exported) byte = static_cast<std::byte>(random());
    });
    EXPECT_EQ(failure, "");
    EXPECT_EQ(contents, expected);
  }
  EXPECT_EQ(copies(0), before);
}

TEST_P(DamagedMailbox, APeerThatCannotOpenItIsPostedToNoMore) {
  connect();
  // As if PE 1 were on another host: to_end, from_end, mailbox, then the name of a file that is not there.
  job.runtime(1).send(
      0, runtime::Message::pack(job.runtime(1), job.runtime(1).model<Channels>().handler(kMailbox),
                                std::uint32_t{1}, std::uint32_t{1}, std::uint64_t{0},
                                MailboxFileName{1, 2, -3, 4}));
  settle();
  EXPECT_EQ(job.runtime(0).model<Channels>().find(1)->direct.outbox, nullptr);
  EXPECT_EQ(path(0).obstacles().size(), 1u);
  for (int i = 0; i < 3; ++i) exchange(0, 1000);
  EXPECT_EQ(copies(0), 0u);
  EXPECT_EQ(job.runtime(1).model<Channels>().find(1)->direct.inbox, nullptr);
  exchange(1, 1000);
  exchange(1, 1000);
  EXPECT_GT(copies(1), 0u) << "the other direction is another mailbox";
}

// Nothing that arrives may do more than end the job.
TEST_P(DamagedMailbox, MessagesOfAnyBytesDoNoHarm) {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    InProcessJob other(2, GetParam());
    Array<Node>::create(other.runtime(0), Shape(2).with_map(Map::kRoundRobin));
    ASSERT_EQ(other.run_until([] { return Node::all[0] != nullptr && Node::all[1] != nullptr; }), "");
    for (int pe = 0; pe < 2; ++pe) static_cast<void>(Node::all[at(pe)]->to_the_other());
    for (int i = 0; i < 200; ++i) {
      const auto which =
          static_cast<ChannelHandler>(kAnnouncement + 1 + random() % (kNumChannelHandlers - 1));
      const runtime::HandlerId handler = other.runtime(1).model<Channels>().handler(which);
      auto message = runtime::Message::create(other.runtime(1), handler, random() % 60);
      for (std::byte& byte : message->payload_span()) byte = static_cast<std::byte>(random() % 3);
      other.runtime(1).send(0, std::move(message));
      for (int pe = 0; pe < 2; ++pe) other.runtime(pe).step();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, DamagedMailbox, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::channel
