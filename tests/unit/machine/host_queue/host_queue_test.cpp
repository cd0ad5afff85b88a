#include "machine/host_queue/host_queue.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
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

struct HostQueueTest : ::testing::Test {
  HostQueueTest() {
    EXPECT_TRUE(take_part_in_fences().ok());
    receiver.open();
  }

  Sent send(const Message& one) { return sender.send(one.id, one.header, one.payload); }
  // What arrives of at most `most` entries.
  std::vector<Message> receive(std::size_t most = 1) {
    std::vector<Message> arrived;
    const auto keep = [&](AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
      arrived.push_back({id, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    };
    while (most-- > 0 && receiver.receive(keep)) {
    }
    return arrived;
  }

  std::unique_ptr<HostQueue> queue = std::make_unique<HostQueue>();
  HostQueueSender sender{queue.get()};
  HostQueueReceiver receiver{queue.get()};
};

TEST_F(HostQueueTest, MessagesOfEverySizeArrive) {
  constexpr std::size_t kBytes = HostQueueEntry::kBytes;
  for (std::size_t header_bytes = 0; header_bytes <= kBytes + 1; ++header_bytes) {
    for (std::size_t payload_bytes = 0; payload_bytes <= kBytes + 1; payload_bytes += 1 + payload_bytes / 9) {
      const Message one = message(static_cast<AmId>(header_bytes % 64), header_bytes, payload_bytes);
      if ((header_bytes + 7) / 8 * 8 + payload_bytes > kBytes) {
        EXPECT_EQ(send(one), Sent::kNo) << header_bytes << " " << payload_bytes;
        EXPECT_TRUE(receive().empty());
      } else {
        ASSERT_EQ(send(one), Sent::kYes) << header_bytes << " " << payload_bytes;
        EXPECT_EQ(receive(), std::vector{one});
      }
    }
  }
}

TEST_F(HostQueueTest, AFullQueueTakesNothingUntilItsReceiverReports) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Message> sent;
    for (std::size_t i = 0; i < kHostQueueEntries; ++i) {
      sent.push_back(message(1, 8, 8, static_cast<int>(i)));
      ASSERT_EQ(send(sent.back()), Sent::kYes);
    }
    EXPECT_EQ(send(message(1, 8, 8)), Sent::kNo);
    EXPECT_EQ(receive(2 * kHostQueueEntries), sent);
  }
}

TEST_F(HostQueueTest, AQueueThatIsNotOpenTakesNothing) {
  const auto not_open = std::make_unique<HostQueue>();
  EXPECT_EQ(HostQueueSender(not_open.get()).send(1, {}, {}), Sent::kNo);
  HostQueueReceiver(not_open.get()).open();
  EXPECT_EQ(HostQueueSender(not_open.get()).send(1, {}, {}), Sent::kYes);
}

TEST_F(HostQueueTest, MessagesToAReceiverThatHasClosedAreDropped) {
  receiver.close();
  for (std::size_t i = 0; i < 2 * kHostQueueEntries; ++i) EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes);
  EXPECT_TRUE(receive().empty());
}

TEST_F(HostQueueTest, AReceiverOfNoQueueGetsNothing) {
  HostQueueReceiver none;
  EXPECT_FALSE(none.has_message());
  EXPECT_FALSE(none.receive([](auto...) { ADD_FAILURE(); }));
}

TEST_F(HostQueueTest, TheReceiverMayGoWhileItDelivers) {
  for (std::size_t i = 0; i < kHostQueueEntries; ++i) ASSERT_EQ(send(message(1, 8, 8)), Sent::kYes);
  std::size_t delivered = 0;
  while (receiver.receive([&](auto...) {
    if (++delivered == kHostQueueEntries / 4) receiver = {};
  })) {
  }
  EXPECT_EQ(delivered, kHostQueueEntries / 4);
}

TEST_F(HostQueueTest, OneSenderWakesASleeper) {
  HostQueueSender other(queue.get());
  ASSERT_TRUE(receiver.before_sleep());
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kToSleeper);
  EXPECT_EQ(other.send(2, {}, {}), Sent::kYes);
  EXPECT_FALSE(receiver.before_sleep()) << "messages are here";
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes) << "it is awake";
  receiver.after_sleep();
  EXPECT_EQ(receive(10).size(), 3u);
}

TEST_F(HostQueueTest, WhatAPeerWritesIsChecked) {
  const auto damage = [&](auto change) {
    ASSERT_EQ(send(message(1, 8, 8)), Sent::kYes);
    change(queue->entry(queue->tail.load() - 1));
    EXPECT_TRUE(receive().empty());
    ASSERT_EQ(send(message(2, 8, 8)), Sent::kYes);
    EXPECT_EQ(receive(), std::vector{message(2, 8, 8)}) << "the next one arrives";
  };
  damage([](HostQueueEntry& entry) { entry.header_bytes = HostQueueEntry::kBytes + 1; });
  damage([](HostQueueEntry& entry) { entry.payload_bytes = HostQueueEntry::kBytes - 7; });
  damage([](HostQueueEntry& entry) { entry.payload_bytes = entry.header_bytes = 255; });
}

TEST_F(HostQueueTest, AHeadThatCannotBeTakesNothing) {
  queue->tail = kHostQueueEntries;
  queue->head = 10 * kHostQueueEntries;
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kNo);
}

// A thread that sends numbers in order until they are over or it is asked to stop.
std::jthread sender_of(HostQueue& queue, AmId id, std::size_t count) {
  return std::jthread([&queue, id, count](const std::stop_token& stop) {
    HostQueueSender own(&queue);
    for (std::size_t number = 0; number < count && !stop.stop_requested();) {
      const Message one = message(id, 8 + number % 100, 0, static_cast<int>(number));
      if (own.send(one.id, one.header, one.payload) == Sent::kNo) {
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
    senders.push_back(sender_of(*queue, static_cast<AmId>(i), kMessages));
  }
  std::vector<std::size_t> arrived(kSenders);
  while (std::reduce(arrived.begin(), arrived.end()) < kSenders * kMessages) {
    const std::vector<Message> some = receive(100);
    if (some.empty()) std::this_thread::yield();
    for (const Message& one : some) {
      const std::size_t number = arrived.at(one.id)++;
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
