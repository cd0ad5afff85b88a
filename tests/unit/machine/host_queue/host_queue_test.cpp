#include "machine/host_queue/host_queue.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <stop_token>
#include <thread>
#include <vector>

namespace weft::machine {
namespace {

using Sent = HostQueueSender::Sent;

struct Message {
  AmId id = 0;
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
  bool operator==(const Message&) const = default;
};

Message message(AmId id, std::size_t header_bytes, std::size_t payload_bytes, int first = 0) {
  Message made{id, std::vector<std::byte>(header_bytes), std::vector<std::byte>(payload_bytes)};
  for (std::byte& byte : made.header) byte = static_cast<std::byte>(first++);
  for (std::byte& byte : made.payload) byte = static_cast<std::byte>(first++);
  return made;
}

struct FreeQueue {
  void operator()(std::byte* memory) const { std::free(memory); }
};

constexpr std::size_t kPes = 4;

std::unique_ptr<std::byte, FreeQueue> queue_memory() {
  std::unique_ptr<std::byte, FreeQueue> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, HostQueue::size_bytes(kPes))));
  std::memset(memory.get(), 0, HostQueue::size_bytes(kPes));
  return memory;
}

// The queue of PE 0 of a host with kPes.
struct HostQueueTest : ::testing::Test {
  HostQueueTest() {
    EXPECT_TRUE(take_part_in_fences().ok());
    receiver.open();
  }

  Sent send(const Message& one) { return sender.send(one.id, one.header, one.payload); }
  // What arrives, at most `most` messages.
  std::vector<Message> receive(int most = 1) {
    std::vector<Message> arrived;
    if (!receiver.has_message()) return arrived;
    EXPECT_TRUE(receiver.receive(
        most, [&](AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
          arrived.push_back({id, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
          return false;
        }));
    return arrived;
  }

  std::unique_ptr<std::byte, FreeQueue> memory = queue_memory();
  HostQueue queue{memory.get(), kPes};
  HostQueueSender sender{queue, 1};
  HostQueueReceiver receiver{queue, 0, kPes};
};

TEST_F(HostQueueTest, EachSenderHasARingOfItsOwn) {
  HostQueueSender other(queue, 3);
  for (std::size_t i = 0; i < HostQueue::cells_for(kPes); ++i) ASSERT_EQ(send(message(1, 8, 8)), Sent::kYes);
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kFull);
  EXPECT_EQ(other.send(2, {}, {}), Sent::kYes);
  const std::vector<Message> arrived = receive(static_cast<int>(HostQueue::cells_for(kPes)) + 1);
  EXPECT_EQ(arrived.size(), HostQueue::cells_for(kPes) + 1);
  EXPECT_EQ(arrived.back(), message(2, 0, 0));
}

TEST_F(HostQueueTest, AMessageThatIsTooLargeMustGoAnotherWay) {
  EXPECT_EQ(send(message(1, 8, 10'000)), Sent::kNo);
  EXPECT_EQ(send(message(1, 256, 8)), Sent::kNo);
}

TEST_F(HostQueueTest, ASenderThatIsHeldFindsTheRingFull) {
  sender.hold();
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kFull);
  EXPECT_TRUE(receive().empty());
  sender.release();
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes);
}

TEST_F(HostQueueTest, AllRingsTogetherGiveAsManyMessagesAsAreAskedFor) {
  HostQueueSender second(queue, 2);
  for (int i = 0; i < 10; ++i) {
    send(message(1, 0, 0));
    second.send(2, {}, {});
  }
  EXPECT_EQ(receive(4).size(), 4u);
  // The other ring has its turn.
  EXPECT_EQ(receive(4), std::vector(4, message(2, 0, 0)));
  EXPECT_EQ(receive(100).size(), 12u);
}

TEST_F(HostQueueTest, WhatAPeerSaysOfSendersMakesNoRingTwice) {
  send(message(1, 8, 8));
  EXPECT_EQ(receive(), std::vector{message(1, 8, 8)});
  for (const std::uint64_t claim :
       {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    queue.head().senders[0] = claim;
    queue.head().bell = QueueHead::kRung;
    send(message(2, 8, 8));
    EXPECT_EQ(receive(10), std::vector{message(2, 8, 8)});
    EXPECT_FALSE(receiver.has_message());
  }
}

TEST_F(HostQueueTest, ABellThatNoSenderRangBringsNothing) {
  queue.head().bell = QueueHead::kRung;
  EXPECT_TRUE(receiver.has_message());
  EXPECT_TRUE(receive().empty());
  EXPECT_FALSE(receiver.has_message());
}

TEST_F(HostQueueTest, ANewSenderIsFoundAmongRingsThatHaveTheirTurn) {
  HostQueueSender second(queue, 2);
  HostQueueSender third(queue, 3);
  send(message(1, 0, 0));
  send(message(1, 0, 0));
  second.send(2, {}, {});
  EXPECT_EQ(receive(), std::vector{message(1, 0, 0)});
  third.send(3, {}, {});
  EXPECT_EQ(receive(), std::vector{message(2, 0, 0)});
  std::vector<Message> rest = receive(10);
  const std::vector<Message> more = receive(10);
  rest.insert(rest.end(), more.begin(), more.end());
  EXPECT_EQ(rest, (std::vector{message(1, 0, 0), message(3, 0, 0)}));
}

TEST_F(HostQueueTest, TheMemoryOfALargeHostIsBounded) {
  EXPECT_LE(16 * HostQueue::size_bytes(16), std::size_t{6} << 20);
  EXPECT_LE(128 * HostQueue::size_bytes(128), std::size_t{48} << 20);
  EXPECT_EQ(HostQueue::cells_for(100'000), 32u);
}

TEST_F(HostQueueTest, AQueueThatIsNotOpenTakesNothing) {
  const auto not_open_memory = queue_memory();
  const HostQueue not_open(not_open_memory.get(), kPes);
  EXPECT_EQ(HostQueueSender(not_open, 1).send(1, {}, {}), Sent::kNo);
  HostQueueReceiver(not_open, 0, kPes).open();
  EXPECT_EQ(HostQueueSender(not_open, 1).send(1, {}, {}), Sent::kYes);
}

TEST_F(HostQueueTest, MessagesToAReceiverThatHasClosedAreDropped) {
  receiver.close();
  for (std::size_t i = 0; i < 2 * HostQueue::cells_for(kPes); ++i)
    EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes);
  EXPECT_TRUE(receive().empty());
}

TEST_F(HostQueueTest, MessagesOfASenderThatHasSentAreDroppedTooWhenItsReceiverHasClosed) {
  ASSERT_EQ(send(message(1, 8, 8)), Sent::kYes);
  EXPECT_EQ(receive().size(), 1u);
  receiver.close();
  for (std::size_t i = 0; i < 2 * HostQueue::cells_for(kPes); ++i)
    EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes);
  EXPECT_EQ(send(message(1, 8, 10'000)), Sent::kYes) << "UCX would connect to a PE that has gone";
  EXPECT_TRUE(receive().empty());
}

TEST_F(HostQueueTest, ASenderOfNoQueueTakesNothing) {
  EXPECT_EQ(HostQueueSender().send(1, {}, {}), Sent::kNo);
  EXPECT_FALSE(HostQueueSender().has_sent());
}

TEST_F(HostQueueTest, AReceiverOfNoQueueGetsNothing) {
  HostQueueReceiver none;
  EXPECT_FALSE(none.has_message());
  EXPECT_FALSE(none);
}

TEST_F(HostQueueTest, TheReceiverMayCloseWhileItDelivers) {
  for (int i = 0; i < 10; ++i) ASSERT_EQ(send(message(1, 8, 8)), Sent::kYes);
  int delivered = 0;
  ASSERT_TRUE(receiver.has_message());
  EXPECT_TRUE(receiver.receive(10, [&](auto...) {
    if (++delivered == 4) receiver.close();
    return false;
  }));
  EXPECT_EQ(delivered, 4);
  EXPECT_FALSE(receiver.has_message());
}

TEST_F(HostQueueTest, OneSenderWakesASleeper) {
  HostQueueSender other(queue, 2);
  ASSERT_TRUE(receiver.before_sleep());
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kToSleeper);
  EXPECT_EQ(other.send(2, {}, {}), Sent::kYes);
  EXPECT_FALSE(receiver.before_sleep()) << "messages are here";
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes) << "it is awake";
  receiver.after_sleep();
  EXPECT_EQ(receive(10).size(), 3u);
}

TEST_F(HostQueueTest, WhatAPeerWritesIsChecked) {
  ASSERT_EQ(send(message(1, 8, 8)), Sent::kYes);
  queue.ring(1).cell(0).payload_bytes = 0xffff;
  HostQueueSender other(queue, 2);
  ASSERT_EQ(other.send(2, {}, {}), Sent::kYes);
  ASSERT_TRUE(receiver.has_message());
  EXPECT_FALSE(receiver.receive(10, [&](auto...) {
    ADD_FAILURE();
    return false;
  }));
  EXPECT_EQ(receive(10), std::vector{message(2, 0, 0)});
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes);
  EXPECT_FALSE(receiver.has_message());
}

TEST_F(HostQueueTest, TheReceiverStopsWhenItHasEnoughAndGoesOnBehindThatRing) {
  HostQueueSender second(queue, 2);
  HostQueueSender third(queue, 3);
  for (AmId id = 0; id < 2; ++id) {
    sender.send(static_cast<AmId>(10 + id), {}, {});
    second.send(static_cast<AmId>(20 + id), {}, {});
    third.send(static_cast<AmId>(30 + id), {}, {});
  }
  std::vector<AmId> ids;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(receiver.has_message());
    EXPECT_TRUE(receiver.receive(10, [&](AmId id, auto...) {
      ids.push_back(id);
      return true;
    }));
  }
  EXPECT_EQ(ids, (std::vector<AmId>{10, 20, 30, 11, 21, 31}));
}

// A thread that sends numbers in order until they are over or it is asked to stop.
std::jthread sender_of(const HostQueue& queue, AmId id, std::size_t count) {
  return std::jthread([queue, id, count](const std::stop_token& stop) {
    HostQueueSender own(queue, id);
    for (std::size_t number = 0; number < count && !stop.stop_requested();) {
      const Message one = message(id, 8 + number % 100, 0, static_cast<int>(number));
      if (own.send(one.id, one.header, one.payload) == Sent::kFull) {
        std::this_thread::yield();
      } else {
        ++number;
      }
    }
  });
}

// Each message arrives once and whole, those of one sender in order.
TEST_F(HostQueueTest, ManySendersAtOnce) {
  constexpr std::size_t kSenders = 3;
  constexpr std::size_t kMessages = 3000;
  std::vector<std::jthread> senders;
  for (std::size_t i = 0; i < kSenders; ++i) {
    senders.push_back(sender_of(queue, static_cast<AmId>(i + 1), kMessages));
  }
  std::vector<std::size_t> arrived(kSenders);
  while (std::reduce(arrived.begin(), arrived.end()) < kSenders * kMessages) {
    const std::vector<Message> some = receive(100);
    if (some.empty()) std::this_thread::yield();
    for (const Message& one : some) {
      const std::size_t number = arrived.at(one.id - 1U)++;
      ASSERT_EQ(one, message(one.id, 8 + number % 100, 0, static_cast<int>(number)));
    }
  }
}

// Each message comes at about the time at which the receiver goes to sleep. Without the fence on its side a wake-up
// would be lost.
TEST_F(HostQueueTest, ASleeperMissesNoMessage) {
  constexpr std::size_t kMessages = 20'000;
  constexpr int kLongestSleepMs = 20'000;
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ASSERT_GE(event, 0);
  std::atomic<std::size_t> arrived = 0;
  {
    const std::jthread other([&](const std::stop_token& stop) {
      for (std::size_t number = 0; number < kMessages; ++number) {
        while (arrived.load() != number) {
          if (stop.stop_requested()) return;
        }
        for (std::size_t spins = number * 7919 % 1000; spins > 0; --spins) {
          std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if (send(message(1, 8, 0)) == Sent::kToSleeper) ::eventfd_write(event, 1);
      }
    });
    while (arrived.load() < kMessages) {
      arrived += receive(100).size();
      if (!receiver.before_sleep()) continue;
      pollfd one{event, POLLIN, 0};
      if (arrived.load() < kMessages) {
        ASSERT_EQ(::poll(&one, 1, kLongestSleepMs), 1)
            << "a wake-up was lost after " << arrived << " messages";
      }
      eventfd_t count = 0;
      ::eventfd_read(event, &count);
      receiver.after_sleep();
    }
  }
  ::close(event);
  EXPECT_EQ(arrived, kMessages);
}

}  // namespace
}  // namespace weft::machine
