// What the header of an active message says of the buffers that come beside it. A peer wrote it: every number
// is bounded here, before anything uses it.
//
// Private to the message layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/message.h"

#include "machine/machine.h"

namespace weft::runtime {

// One buffer, as it stands on the wire.
struct Announcement {
  std::uint32_t source_pe = 0;  // of its tag; of the PE that sent it on, if one did
  std::uint32_t counter = 0;
  std::uint64_t size_bytes = 0;
  memory::Kind kind = memory::Kind::kHost;
  std::uint8_t reserved[7] = {};
};
static_assert(std::is_trivially_copyable_v<Announcement> && sizeof(Announcement) == 24);
static_assert(Message::kMaxAttachments * sizeof(Announcement) <= machine::kMaxAmHeaderBytes);

// No buffer of a message is larger.
inline constexpr std::size_t kMaxBufferBytes = std::size_t{1} << 62;

// kCorrupt for bytes that no PE of `num_pes` would send.
base::Status check(const Announcement& announced, int num_pes);

// Enters the announced buffers, which come with tags, in `message`.
base::Status expect_tagged(Message& message, std::span<const std::byte> header);
// Enters the only buffer, which is the payload of the active message itself.
base::Status expect_payload(Message& message, const Announcement& announced, std::size_t payload_bytes);

}  // namespace weft::runtime
