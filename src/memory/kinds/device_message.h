// Messages that devices move among themselves: what the ends of messages do on a stream. KindBackend::queue_messages() queues many of
// them as one piece of work, and each end goes on by itself. No CPU takes part when they run. See also device_step.h, whose
// words these are: 32 bits, cyclic, with one writer at a time.
//
// A message is written in parts, each by a block of threads that raises a word of its own. Small messages
// are *packets*: each packet has 4 bytes of data and the message's number, written as one, so that no word has to follow them. That
// saves the wait until the data is visible, about 1 us between two GPUs. The receiver unpacks them.
//
// A message has a place at the receiver. Either the program reads it there, and the CPU has chosen the place. Or it goes through a ring
// of places, which its number chooses, and the receiver takes it out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/kinds/device_step.h"

namespace weft::memory {

// The ends that are queued at once.
inline constexpr std::size_t kMaxMessageEnds = 16;
// The parts of a message.
inline constexpr std::uint32_t kMaxMessageParts = 64;
inline constexpr std::size_t kMostPacketBytes = 8 << 10;
// Packets come in pairs, of 16 bytes with 8 of data. A label is one.
inline constexpr std::size_t kPacketPairBytes = 16;
inline constexpr std::size_t kMostLabelledPacketBytes = kMostPacketBytes - 8;
// One part for so many bytes.
inline constexpr std::size_t kMessagePartBytes = 8 << 10;

constexpr std::uint32_t message_parts(std::size_t size_bytes) {
  const std::size_t wanted = (size_bytes + kMessagePartBytes - 1) / kMessagePartBytes;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(wanted, 1, kMaxMessageParts));
}
// Where each part but the first begins: a multiple of this.
constexpr std::size_t message_part_bytes(std::size_t size_bytes, std::uint32_t parts) {
  constexpr std::size_t kAlignment = 128;
  return ((size_bytes + parts - 1) / parts + kAlignment - 1) / kAlignment * kAlignment;
}
// The memory of a message as packets. It is aligned to 16 bytes.
constexpr std::size_t packet_bytes(std::size_t size_bytes) { return (size_bytes + 7) / 8 * kPacketPairBytes; }

// The messages of a direction. In memory of the stream's device, and zeros at first.
struct alignas(8) MessageCount {
  std::uint32_t number = 0;
  std::uint32_t begun = 0;  // parts of the launch that have read `number`: the last one raises it
};

enum class MessageSide : std::uint32_t {
  kSend,  // for each part: waits until the word at `waits` has reached n - (num_places - 1), copies, and writes n + 1 to its word of `signals`
  kSendPackets,  // the same, into packets: `to` is memory of packets, `signals` is not used, and there is one part
  kAwaitPlace,  // waits as kSend does, and counts nothing
  kReceive,  // writes *freed to `signals`, and waits until each of `parts` words at `waits` has reached n + 1
  kReceivePackets,  // the same, and waits for the packets at `from`, which it copies to `to`; `waits` is not used
  kTake,  // for each part: waits until its word of `waits` has reached n + 1, and copies. The last part writes n + 1 to `signals`
  kTakePackets,   // the same from packets: `waits` is not used, and there is one part
  kAwaitMessage,  // waits until message n has a label, and counts nothing
};

// n is the number of the message: the value of the end's count when the launch begins, and one more for each end in front of it that
// has the same count. The ends raise the count. A send or a receive without an address leaves out what that is for, so a send without
// words is a copy. `count`, `waits`, `freed` and `taken` are in memory of the stream's device.
struct MessageEnd {
  MessageSide side = MessageSide::kSend;
  std::uint32_t parts = 1;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t size_bytes = 0;
  std::size_t part_bytes = 0;  // message_part_bytes()
  MessageCount* count = nullptr;
  const std::uint32_t* waits = nullptr;
  std::uint32_t* signals = nullptr;
  const std::uint32_t* freed = nullptr;  // kReceive
  std::uint32_t* taken = nullptr;        // kTake: counts parts, 0 at first and afterwards

  // What the message is, for a check: unless it is 0, a send writes it to the packets at `labels`, and an end that takes must find it there.
  // The launch fails if it does not: a kind that cannot fail a launch alone fails its device. Packets with a label are of
  // kMostLabelledPacketBytes at most.
  std::uint64_t label = 0;
  std::byte* labels = nullptr;
  // A ring, for sends and takes: message n uses place n % num_places, a power of 2. Addresses are those of place 0. The others follow:
  // data, packets and labels place_bytes further on, words of parts kMaxMessageParts further on, and the others the next.
  std::size_t place_bytes = 0;
  std::uint32_t num_places = 1;

  std::uint32_t place_of(std::uint32_t number) const { return number & (num_places - 1); }

  // --- Set by number_ends()
  std::uint32_t offset = 0;  // of n from the count. Ends that await are given it
  std::uint32_t raise = 0;   // the count becomes n + raise
  std::uint32_t blocks = 0;  // parts of the launch that read the count; 0: counts nothing
};

// A copy.
constexpr MessageEnd copy_end(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  MessageEnd end;
  end.to = to;
  end.from = from;
  end.size_bytes = size_bytes;
  end.parts = message_parts(size_bytes);
  end.part_bytes = message_part_bytes(size_bytes, end.parts);
  return end;
}

constexpr bool is_send(MessageSide side) { return side < MessageSide::kReceive; }
constexpr bool is_take(MessageSide side) { return side >= MessageSide::kTake; }
constexpr bool is_await(MessageSide side) {
  return side == MessageSide::kAwaitPlace || side == MessageSide::kAwaitMessage;
}
constexpr bool has_packets(MessageSide side) {
  return side == MessageSide::kSendPackets || side == MessageSide::kReceivePackets ||
         side == MessageSide::kTakePackets;
}
// Parts that are blocks of their own.
constexpr std::uint32_t own_parts(const MessageEnd& end) {
  return end.side == MessageSide::kReceive ? 1 : end.parts;
}

// Numbers the ends of a launch. For kinds.
constexpr void number_ends(std::span<MessageEnd> ends) {
  const auto count_like = [&](const MessageEnd& end, auto&& body) {
    for (MessageEnd& other : ends)
      if (other.count == end.count && !is_await(other.side)) body(other);
  };
  for (MessageEnd& end : ends) {
    if (end.count == nullptr || is_await(end.side)) continue;
    std::uint32_t total = 0;
    std::uint32_t blocks = 0;
    count_like(end, [&](MessageEnd& other) {
      if (&other == &end) end.offset = total;
      ++total;
      blocks += own_parts(other);
    });
    end.raise = total - end.offset;
    end.blocks = blocks;
  }
}

}  // namespace weft::memory
