// What each message of the model says of itself, in front of its bytes, and what a receiver answers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::mpi {

// 32 bytes: with the envelope of 16 in a block, or of 8 in front of a direct message, messages of up to 200 bytes go through the
// queue that PEs of a host share. Ranks without
// another word are numbers in MPI_COMM_WORLD.
struct MessageHeader {
  std::uint64_t context = 0;
  // Counts the messages of this pair of ranks, from 0. They are matched in this order.
  std::uint32_t sequence = 0;
  std::int32_t source = 0;  // the sender's rank in the communicator
  std::int32_t tag = 0;
  std::int32_t from = 0;  // the sender
  std::int32_t to = 0;    // the receiver
  std::uint32_t flags = 0;
};
static_assert(sizeof(MessageHeader) == 32);

enum MessageFlag : std::uint32_t {
  // The sender waits until a receive has matched. The number for the answer, 64 bits, is behind the bytes of the message.
  kWantsAnswer = 1,
  kCharged = 2,  // the message takes room of the sender's window, see EagerWindow
};
inline constexpr std::uint32_t kKnownMessageFlags = kWantsAnswer | kCharged;

// What a message has behind its bytes.
inline std::size_t trailer_bytes(std::uint32_t flags) {
  return (flags & kWantsAnswer) != 0 ? sizeof(std::uint64_t) : 0;
}

// From the PE of a receiver to the PE of the sender.
struct Answer {
  // The number of a message that has been matched; 0 for none.
  std::uint64_t reply = 0;
  // Room of the window that has become free.
  std::uint64_t room_bytes = 0;
  std::int32_t from = 0;  // the rank that has received the message
  std::int32_t to = 0;    // the rank that has sent it
};

}  // namespace weft::mpi
