// The header of an active message that announces its out-of-band buffers. It comes from a peer, so every number
// is checked here before it is used.
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

// The wire format of one announced buffer.
struct Announcement {
  std::uint32_t source_pe = 0;  // the PE that sent or forwarded the buffer; part of its tag
  std::uint32_t counter = 0;
  std::uint64_t size_bytes = 0;
  memory::Kind kind = memory::Kind::kHost;
  std::uint8_t send_waits = 0;  // for its receive; see machine::PeerMemory
  // Not 0: the sender's memory is named (machine::SourceName), in as many bytes behind the announcements.
  std::uint16_t name_bytes = 0;
  std::uint8_t reserved[4] = {};
};
static_assert(std::is_trivially_copyable_v<Announcement> && sizeof(Announcement) == 24);
static_assert(Message::kMaxAttachments * sizeof(Announcement) <= machine::kMaxAmHeaderBytes);

// 4 EiB. A larger size comes from a corrupt message.
inline constexpr std::size_t kMaxBufferBytes = std::size_t{1} << 62;

// kCorrupt for bytes that no PE of `num_pes` would send.
base::Status check(const Announcement& announced, int num_pes);

// Adds the buffers that `header` announces to `message`: announcements, then names. They arrive as tagged messages, or
// are copied out of the memory that is named.
base::Status expect_tagged(Message& message, std::span<const std::byte> header);
// Adds the only buffer to `message`. It is the payload of the active message itself.
base::Status expect_payload(Message& message, const Announcement& announced, std::size_t payload_bytes);

}  // namespace weft::runtime
