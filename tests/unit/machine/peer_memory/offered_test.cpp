// Receives that their senders are told of in a message of the model.
#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;

// Node 1 offers, node 0 accepts.
struct OfferedTest : PeerMemoryTest {
  OfferedTest() { start(); }

  std::optional<base::Status> offer(std::uint32_t number, const memory::Buffer& into, Outcome& outcome) {
    return peer_memory(1).receive_offered(incoming[1], number, into, &outcome);
  }
  std::optional<base::Status> accept(std::uint32_t number, const memory::ConstBuffer& from,
                                     Outcome& outcome) {
    return peer_memory(0).send_offered(outgoing[0], number, from, &outcome);
  }
  // Used by the model's messages so far.
  std::uint32_t next() const { return incoming[1].next; }
};

TEST_P(OfferedTest, IsCopiedIntoWhenItsSenderAccepts) {
  TestMemory to = used(1, 100);
  for (std::uint8_t round = 0; round < 200; ++round) {
    TestMemory from(memory(0), kDevice, 100, round);
    Outcome received;
    Outcome sent;
    const std::uint32_t number = next() + round;
    const auto offered = offer(number, to.buffer(), received);
    ASSERT_TRUE(offered && offered->is_pending()) << int{round};
    const auto accepted = accept(number, from.buffer(), sent);
    ASSERT_TRUE(accepted && accepted->is_pending()) << int{round};
    while (!received.done || !sent.done) step();
    EXPECT_TRUE(received.status.ok() && sent.status.ok());
    EXPECT_EQ(received.size_bytes, 100U);
    EXPECT_EQ(to.now(), from.filled());
  }
}

TEST_P(OfferedTest, IsNotAcceptedAfterItWasTakenBack) {
  TestMemory to = used(1, 64);
  TestMemory from(memory(0), kDevice, 64, 7);
  const std::vector<std::uint8_t> before = to.now();
  Outcome received;
  Outcome sent;
  ASSERT_TRUE(offer(next(), to.buffer(), received));
  machine(1).cancel(&received);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.status.code(), StatusCode::kCancelled);
  EXPECT_FALSE(accept(next(), from.buffer(), sent));
  settle();
  EXPECT_EQ(to.now(), before);
}

TEST_P(OfferedTest, CannotBeTakenBackAfterItWasAccepted) {
  TestMemory to = used(1, 64);
  TestMemory from(memory(0), kDevice, 64, 7);
  Outcome received;
  Outcome sent;
  ASSERT_TRUE(offer(next(), to.buffer(), received));
  ASSERT_TRUE(accept(next(), from.buffer(), sent));
  machine(1).cancel(&received);
  while (!received.done || !sent.done) step();
  EXPECT_TRUE(received.status.ok());
  EXPECT_EQ(to.now(), from.filled());
}

TEST_P(OfferedTest, IsForAsManyBytesAndForItsNumberOnly) {
  TestMemory to = used(1, 64);
  TestMemory from(memory(0), kDevice, 65, 7);
  Outcome received;
  Outcome sent;
  ASSERT_TRUE(offer(next(), to.buffer(), received));
  EXPECT_FALSE(accept(next(), from.buffer(), sent));
  const memory::ConstBuffer fewer(from.buffer().data, 63, kDevice);
  EXPECT_FALSE(accept(next(), fewer, sent));
  const memory::ConstBuffer as_many(from.buffer().data, 64, kDevice);
  EXPECT_FALSE(accept(next() + 1, as_many, sent));
  EXPECT_FALSE(accept(next() + kSlots, as_many, sent));
  ASSERT_TRUE(accept(next(), as_many, sent));
  while (!received.done || !sent.done) step();
  EXPECT_TRUE(received.status.ok());
}

TEST_P(OfferedTest, IsNotMadeOfMemoryThatCannotBePosted) {
  Outcome received;
  TestMemory first_use(memory(1), kDevice, 64, 0);
  EXPECT_FALSE(offer(next(), first_use.buffer(), received));
  TestMemory not_mapped = refusing(1, 64);
  EXPECT_FALSE(offer(next(), not_mapped.buffer(), received));
  std::array<std::byte, 64> host{};
  EXPECT_FALSE(offer(next(), {host.data(), host.size(), {}, nullptr}, received));
  TestMemory to = used(1, 64);
  EXPECT_FALSE(offer(next(), {to.buffer().data, 0, kDevice, nullptr}, received));
  EXPECT_FALSE(received.done);
}

TEST_P(OfferedTest, EndsWhenItsMachineCloses) {
  TestMemory to = used(1, 64);
  Outcome received;
  ASSERT_TRUE(offer(next(), to.buffer(), received));
  close_pe(1);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.status.code(), StatusCode::kClosed);
}

INSTANTIATE_TEST_SUITE_P(Machines, OfferedTest, ::testing::Values("loopback", "ucx"));

}  // namespace
}  // namespace weft::machine
