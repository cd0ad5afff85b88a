#include "machine/host_queue/host_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
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

TEST_F(HostQueueTest, AClosedQueueTakesNothing) {
  receiver.close();
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kNo);
  receiver.open();
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kYes);
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
  damage([](HostQueueEntry& entry) { entry.header_bytes = 121; });
  damage([](HostQueueEntry& entry) { entry.payload_bytes = 113; });
  damage([](HostQueueEntry& entry) { entry.payload_bytes = entry.header_bytes = 255; });
}

TEST_F(HostQueueTest, AHeadThatCannotBeTakesNothing) {
  queue->tail = kHostQueueEntries;
  queue->head = 10 * kHostQueueEntries;
  EXPECT_EQ(send(message(1, 8, 8)), Sent::kNo);
}

// Several senders at once: each message arrives once and whole, those of one sender in order.
TEST_F(HostQueueTest, ManySendersAtOnce) {
  constexpr std::size_t kSenders = 3;
  constexpr std::size_t kMessages = 3000;
  std::vector<std::jthread> senders;
  for (std::size_t i = 0; i < kSenders; ++i) {
    senders.emplace_back([this, i] {
      HostQueueSender own(queue.get());
      for (std::size_t number = 0; number < kMessages;) {
        const Message one = message(static_cast<AmId>(i), 8 + number % 100, 0, static_cast<int>(number));
        if (own.send(one.id, one.header, one.payload) == Sent::kNo) {
          std::this_thread::yield();
        } else {
          ++number;
        }
      }
    });
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

}  // namespace
}  // namespace weft::machine
