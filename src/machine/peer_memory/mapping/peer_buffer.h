// A buffer in memory that its owner exports: what another PE of the host needs to find the bytes.
//
// A PeerBuffer is plain data. It travels in shared memory or in a message, followed by the bytes that
// KindBackend::export_allocation() gave for the allocation. It comes from a peer, so Imports checks all of
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/memory/buffer.h"

namespace weft::machine {

// The largest result of KindBackend::export_allocation() that can travel.
inline constexpr std::size_t kMaxExportedBytes = 128;

struct PeerBuffer {
  std::uint64_t export_number = 0;  // of the allocation; its owner never gives a number to another one
  std::uint64_t allocation_base = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t offset_bytes = 0;  // into the allocation
  std::uint64_t size_bytes = 0;
  memory::Place place;
  std::uint32_t exported_bytes = 0;
};

}  // namespace weft::machine
