// What each message of the model says of itself, in front of its bytes, and what a receiver answers.
#pragma once

#include <cstdint>

namespace weft::mpi {

// 32 bytes: with the envelope of 16, messages of up to 200 bytes go through the queue that PEs of a host share.
struct MessageHeader {
  std::uint64_t context = 0;
  // Counts the messages of this pair of PEs, from 0. They are matched in this order.
  std::uint32_t sequence = 0;
  std::int32_t source = 0;  // the sender's rank in the communicator
  std::int32_t tag = 0;
  std::uint32_t flags = 0;
  // For the answer to a message with kWantsAnswer.
  std::uint64_t reply = 0;
};
static_assert(sizeof(MessageHeader) == 32);

enum MessageFlag : std::uint32_t {
  kWantsAnswer = 1,  // the sender waits until a receive has matched
  kCharged = 2,      // the message takes room of the sender's window, see EagerWindow
};
inline constexpr std::uint32_t kKnownMessageFlags = kWantsAnswer | kCharged;

// From the receiver of messages to their sender.
struct Answer {
  // The `reply` of a message that has been matched; 0 for none.
  std::uint64_t reply = 0;
  // Room of the window that has become free.
  std::uint64_t room_bytes = 0;
};

}  // namespace weft::mpi
