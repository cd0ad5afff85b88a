// Sizes of messages that several layers share. The README of this folder has the table of all sizes at which a message
// changes its way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::machine {

// Host memory from this size on stays with its sender until the receive is posted. It exceeds UCX's limit for eager messages
// between PEs of one host (580 KB with UCX 1.22), which an update of UCX may move.
inline constexpr std::size_t kLeastHeldBytes = 600'000;

// The memory that a small message takes besides its payload.
// At a sender whose peer does not receive: its block, and UCX's request. docs/decisions/flow-control.md.
inline constexpr std::int64_t kSentMessageBytes = 768;
// At a receiver that no receive has matched: its block, its entry, and its place in a queue. Estimated, not measured.
inline constexpr std::int64_t kKeptMessageBytes = 512;

}  // namespace weft::machine
