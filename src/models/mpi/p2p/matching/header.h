// The header in front of the bytes of each message of the model, and the answers of a receiver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::mpi {

// 32 bytes: with the envelope of 8 in front of a direct message and the head of a cell, a message of 16 bytes takes one cache line of
// the ring that two PEs of a host share. Ranks without another word are numbers in MPI_COMM_WORLD.
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
  kCharged = 2,  // the message takes room of the sender's window, see SharedState::window
  // The bytes go into an offered receive; the number of the offer, 64 bits, is all that is behind the header.
  kOffered = 4,
  // The sender waits a moment for offers, which should therefore be made.
  kAwaitsOffers = 8,
};
inline constexpr std::uint32_t kKnownMessageFlags = kWantsAnswer | kCharged | kOffered | kAwaitsOffers;

// The size of the trailer that a message with these flags has behind its bytes.
inline std::size_t trailer_bytes(std::uint32_t flags) {
  return (flags & (kWantsAnswer | kOffered)) != 0 ? sizeof(std::uint64_t) : 0;
}

// From a receiver to the source of its next message, see ReceiveOffers. It names no memory of the sender, and the sender checks what is
// posted where the number leads.
struct ReceiveOffer {
  std::uint64_t context = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t sequence = 0;  // of the message that may accept
  std::uint32_t number = 0;    // of the receive, for PeerMemory::send_offered()
  std::int32_t source = 0;     // the sender's rank in the communicator
  std::int32_t tag = 0;        // -1: every tag
  std::int32_t from = 0;       // the rank that receives
  std::int32_t to = 0;         // the rank that may send
};
static_assert(sizeof(ReceiveOffer) == 40);

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
