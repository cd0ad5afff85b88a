// The tags of buffers that travel out of band. In bits:    type 4 | source PE 32 | counter 28
//
// The source PE increments the counter, which wraps around.
#pragma once

#include <cstdint>

#include "machine/tag.h"

namespace weft::runtime {

inline constexpr std::uint8_t kPayloadTagType = 1;
// The models get the types from here on.
inline constexpr std::uint8_t kFirstModelTagType = 2;

inline constexpr int kPayloadCounterBits = 28;
inline constexpr std::uint32_t kPayloadCounterMask = (std::uint32_t{1} << kPayloadCounterBits) - 1;
static_assert(32 + kPayloadCounterBits == machine::kTagValueBits);

constexpr machine::Tag payload_tag(std::uint32_t source_pe, std::uint32_t counter) {
  return machine::make_tag(kPayloadTagType,
                           std::uint64_t{source_pe} << kPayloadCounterBits | (counter & kPayloadCounterMask));
}

// Taken apart. REQUIRES: a payload tag.
constexpr std::uint32_t payload_source(machine::Tag tag) {
  return static_cast<std::uint32_t>(tag >> kPayloadCounterBits);
}
constexpr std::uint32_t payload_counter(machine::Tag tag) {
  return static_cast<std::uint32_t>(tag) & kPayloadCounterMask;
}
// The name of the stream of all buffers from its source PE.
constexpr machine::Tag payload_stream(machine::Tag tag) { return tag & ~machine::Tag{kPayloadCounterMask}; }

}  // namespace weft::runtime
