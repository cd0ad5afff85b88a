// Small messages that go from the sender's memory into shared memory and from there to the handler, without a block of their
// own at either end. For models whose messages have numbers, because they may overtake others.
//
// Quiescence detection does not count direct messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/runtime/message.h"

namespace weft::runtime {

// The wire format in front of the model's header.
struct DirectEnvelope {
  HandlerId handler = 0;
  std::uint16_t reserved = 0;
  std::uint32_t source_pe = 0;
};
static_assert(sizeof(DirectEnvelope) == 8);

// A larger payload has no direct way: it would be copied in and out of the shared memory, and there are faster ways.
inline constexpr std::size_t kMostDirectBytes = 4096;

// Valid during the call of the handler. All of it is a claim of the peer, which may change the bytes during the call; source_pe is
// the number of another PE.
struct DirectArrival {
  int source_pe;
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
};

// Called inside progress(), also while a call waits. It runs no code of the program, and calls no progress(). An exception
// ends the job. Returns whether the PE has what it waits for, see machine::AmArrival::is_enough.
using DirectHandler = bool (*)(void* context, const DirectArrival& arrival);

}  // namespace weft::runtime
