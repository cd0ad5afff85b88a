// Messages that devices move among themselves: what the ends of messages do on a stream. KindBackend::queue_messages() queues many of
// them as one piece of work, and each end goes on by itself. No CPU takes part when they run. See also device_step.h, whose
// words these are: 32 bits, cyclic, with one writer at a time.
//
// A message is written in parts, each by a block of threads that has a count of its own and raises a word of its own. Small messages
// are *packets*: each packet has 4 bytes of data and the message's number, written as one, so that no word has to follow them. That
// saves the wait until the data is visible, about 1 us between two GPUs. The receiver unpacks them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "memory/kinds/device_step.h"

namespace weft::memory {

// The ends that are queued at once.
inline constexpr std::size_t kMaxMessageEnds = 16;
// The parts of a message.
inline constexpr std::uint32_t kMaxMessageParts = 64;
inline constexpr std::size_t kMostPacketBytes = 8 << 10;
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
constexpr std::size_t packet_bytes(std::size_t size_bytes) { return (size_bytes + 7) / 8 * 16; }

enum class MessageSide : std::uint32_t {
  kSend,  // for each part: waits until the word at `waits` has reached n, copies, and writes n + 1 to its word of `signals`
  kSendPackets,  // the same, into packets: `to` is memory of packets, `signals` is not used, and there is one part
  kAwaitPlace,  // waits until the word at `waits` has reached n, and counts nothing
  kReceive,  // writes *freed to `signals`, and waits until each of `parts` words at `waits` has reached n + 1
  kReceivePackets,  // the same, and waits for the packets at `from`, which it copies to `to`; `waits` is not used
};

// n is the value of the end's count at its begin; a part of a send has the count at `counts` + its number, and a receive has one. The
// end raises them last. An address that is null leaves out what it is for, so an end without words is a copy. `counts`, `waits`
// and `freed` are in memory of the stream's device.
struct MessageEnd {
  MessageSide side = MessageSide::kSend;
  std::uint32_t parts = 1;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t size_bytes = 0;
  std::size_t part_bytes = 0;  // message_part_bytes()
  std::uint32_t* counts = nullptr;
  const std::uint32_t* waits = nullptr;
  std::uint32_t* signals = nullptr;
  const std::uint32_t* freed = nullptr;
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

}  // namespace weft::memory
