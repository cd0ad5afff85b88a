// The memory of a sender, named in the announcement of a message (PeerMemory::plan_announced), so that the receiver can
// begin to copy it without asking. It comes from a peer, so all of it is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "machine/peer_memory/mapping/peer_buffer.h"

namespace weft::machine {

struct SourceName {
  // Device memory: as Exports names it. Host memory: allocation_base is its address.
  PeerBuffer buffer;
  std::int32_t pid = 0;                               // of the process that has the host memory
  std::array<std::byte, kMaxExportedBytes> exported;  // the first buffer.exported_bytes

  // On the wire it is its first wire_bytes() bytes: all PEs run the same build.
  std::size_t wire_bytes() const;
};
inline constexpr std::size_t kLeastSourceNameBytes = offsetof(SourceName, exported);
static_assert(std::is_trivially_copyable_v<SourceName>);

inline std::size_t SourceName::wire_bytes() const { return kLeastSourceNameBytes + buffer.exported_bytes; }

}  // namespace weft::machine
