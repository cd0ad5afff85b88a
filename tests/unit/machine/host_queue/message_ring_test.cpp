#include "machine/host_queue/message_ring.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

namespace weft::machine {
namespace {

using Received = RingReceiver::Received;

struct RingMessage {
  AmId id = 0;
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
  bool operator==(const RingMessage&) const = default;
};

RingMessage ring_message(AmId id, std::size_t header_bytes, std::size_t payload_bytes, int first = 0) {
  RingMessage made{id, std::vector<std::byte>(header_bytes), std::vector<std::byte>(payload_bytes)};
  for (std::byte& byte : made.header) byte = static_cast<std::byte>(first++);
  for (std::byte& byte : made.payload) byte = static_cast<std::byte>(first++);
  return made;
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using RingMemory = std::unique_ptr<std::byte, FreeMemory>;

RingMemory ring_memory(std::size_t num_cells) {
  const std::size_t size_bytes = MessageRing::size_bytes(num_cells);
  RingMemory memory(static_cast<std::byte*>(std::aligned_alloc(MessageRing::kCellBytes, size_bytes)));
  std::memset(memory.get(), 0, size_bytes);
  return memory;
}

struct MessageRingTest : ::testing::TestWithParam<std::size_t> {
  bool send(const RingMessage& one) {
    return sender.takes(one.header.size(), one.payload.size()) &&
           sender.send(one.id, one.header, one.payload);
  }
  std::vector<RingMessage> receive(std::size_t most = 1) {
    std::vector<RingMessage> arrived;
    const auto keep = [&](AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
      arrived.push_back({id, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
      return false;
    };
    while (most-- > 0 && next.is_here() && receiver.receive(next, keep) == Received::kMessage) {
    }
    return arrived;
  }

  RingMemory memory = ring_memory(GetParam());
  MessageRing ring{memory.get(), GetParam()};
  RingSender sender{ring};
  RingReceiver receiver{ring};
  NextTurn next = receiver.first();
};

TEST_P(MessageRingTest, MessagesOfEverySizeArrive) {
  for (std::size_t header_bytes = 0; header_bytes <= 256; header_bytes += 1 + header_bytes / 40) {
    for (std::size_t payload_bytes = 0; payload_bytes <= 4300; payload_bytes += 1 + payload_bytes / 9) {
      const RingMessage one = ring_message(static_cast<AmId>(header_bytes % 64), header_bytes, payload_bytes);
      if (!ring.takes(header_bytes, payload_bytes)) {
        EXPECT_FALSE(send(one)) << header_bytes << " " << payload_bytes;
        EXPECT_TRUE(receive().empty());
      } else {
        ASSERT_TRUE(send(one)) << header_bytes << " " << payload_bytes;
        EXPECT_EQ(receive(), std::vector{one});
      }
    }
  }
}

TEST_P(MessageRingTest, TheLargestMessageTakesAQuarterOfTheRing) {
  const std::size_t most_cells = MessageRing::most_cells(GetParam());
  const std::size_t most_bytes = most_cells * MessageRing::kCellBytes - sizeof(CellHead);
  EXPECT_LE(most_cells * 4, GetParam());
  EXPECT_EQ(MessageRing::cells_of(0, most_bytes), most_cells);
  EXPECT_TRUE(ring.takes(0, most_bytes));
  EXPECT_TRUE(ring.takes(16, most_bytes - 16));
  EXPECT_FALSE(ring.takes(0, most_bytes + 1));
  EXPECT_FALSE(ring.takes(1, most_bytes - 7));
  EXPECT_FALSE(ring.takes(MessageRing::kMostHeaderBytes + 1, 0));
  EXPECT_FALSE(ring.takes(~std::size_t{0}, 0));
  EXPECT_FALSE(ring.takes(8, ~std::size_t{0} - 4));
}

TEST_P(MessageRingTest, AFullRingTakesNothingUntilItsReceiverReports) {
  for (int round = 0; round < 3; ++round) {
    std::vector<RingMessage> sent;
    for (std::size_t i = 0; i < GetParam(); ++i) {
      sent.push_back(ring_message(1, 8, 8, static_cast<int>(i)));
      ASSERT_TRUE(send(sent.back()));
    }
    EXPECT_FALSE(send(ring_message(1, 8, 8)));
    EXPECT_EQ(receive(2 * GetParam()), sent);
  }
}

// The bytes of a message look like the head of one: each cell inside it begins with the turn that its position has next.
TEST_P(MessageRingTest, WhatUsersSendIsNotTakenForAMessage) {
  constexpr std::size_t kCells = 4;
  for (std::uint64_t position = 0; position < 20 * GetParam(); ++position) {
    const bool is_large = position % 3 == 0;
    RingMessage one = ring_message(1, 0, is_large ? kCells * MessageRing::kCellBytes - sizeof(CellHead) : 8);
    if (is_large) {
      for (std::size_t cell = 1; cell < kCells; ++cell) {
        for (std::uint64_t lap = 0; lap < 4; ++lap) {
          // The bytes of cell number `cell`, as an early reader of any of the next laps would like them.
          const std::uint32_t turn = MessageRing::turn_of(position + cell + lap * GetParam());
          std::memcpy(one.payload.data() + cell * MessageRing::kCellBytes - sizeof(CellHead) + 8 * lap, &turn,
                      sizeof turn);
        }
      }
    }
    ASSERT_TRUE(send(one));
    ASSERT_EQ(receive(), std::vector{one});
    ASSERT_FALSE(next.is_here());
  }
}

TEST_P(MessageRingTest, SizesThatCannotBeStopTheRing) {
  const auto check = [&](auto change) {
    const RingMemory other_memory = ring_memory(GetParam());
    const MessageRing other(other_memory.get(), GetParam());
    RingSender from(other);
    RingReceiver to(other);
    ASSERT_TRUE(from.send(1, {}, {}));
    ASSERT_TRUE(from.send(1, {}, {}));
    NextTurn turn = to.first();
    EXPECT_EQ(to.receive(turn, [](auto...) { return false; }), Received::kMessage);
    change(other.cell(1));
    ASSERT_TRUE(turn.is_here());
    EXPECT_EQ(to.receive(turn,
                         [](auto...) {
                           ADD_FAILURE();
                           return false;
                         }),
              Received::kBroken);
    EXPECT_TRUE(from.send(1, {}, {}));
    EXPECT_FALSE(turn.is_here());
  };
  check([](CellHead& cell) { cell.payload_bytes = 0xffff; });
  check([&](CellHead& cell) {
    cell.payload_bytes = static_cast<std::uint16_t>(MessageRing::most_cells(GetParam()) * 64 - 7);
  });
}

TEST_P(MessageRingTest, AHeadThatCannotBeTakesNothing) {
  for (std::size_t i = 0; i < GetParam(); ++i) ASSERT_TRUE(sender.send(1, {}, {}));
  ring.head() = 10 * GetParam();
  EXPECT_FALSE(sender.send(1, {}, {}));
  ring.head() = ~std::uint64_t{0};
  EXPECT_FALSE(sender.send(1, {}, {}));
}

TEST_P(MessageRingTest, AReceiverThatHasStoppedGetsNothing) {
  ASSERT_TRUE(sender.send(1, {}, {}));
  ASSERT_TRUE(sender.send(1, {}, {}));
  EXPECT_EQ(receiver.receive(next,
                             [&](auto...) {
                               next.stop();
                               return false;
                             }),
            Received::kMessage);
  EXPECT_FALSE(next.is_here());
}

// Each message arrives once, whole and in order, whatever its size.
TEST_P(MessageRingTest, AnotherThreadSends) {
  constexpr std::uint32_t kSeed = 7;
  constexpr int kMessages = 5000;
  const std::size_t most_bytes = MessageRing::most_cells(GetParam()) * MessageRing::kCellBytes - 64;
  const auto message_number = [&](std::mt19937& random, int number) {
    return ring_message(1, random() % 40, random() % most_bytes, number);
  };
  const std::jthread other([&](const std::stop_token& stop) {
    std::mt19937 random(kSeed);
    for (int number = 0; number < kMessages; ++number) {
      const RingMessage one = message_number(random, number);
      while (!send(one) && !stop.stop_requested()) std::this_thread::yield();
    }
  });
  std::mt19937 random(kSeed);
  for (int number = 0; number < kMessages;) {
    const std::vector<RingMessage> some = receive(100);
    if (some.empty()) std::this_thread::yield();
    for (const RingMessage& one : some) ASSERT_EQ(one, message_number(random, number++)) << "seed " << kSeed;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MessageRingTest, ::testing::Values(32, 64, 256, 512));

}  // namespace
}  // namespace weft::machine
