// Which of UCX's shared-memory transports a PE uses.
//
// UCX has two of the same speed, and by default every PE makes queues for both. `posix` is the one that Weft keeps: its
// segments are readable by the user alone, those of `sysv` by the user's group too.
#pragma once

#include <cstdint>

namespace weft::machine::ucx {

// Whether a file system with `free_bytes` holds the POSIX segments of so many PEs, whatever they send. A container's
// /dev/shm may be as small as 64 MiB; then `sysv` must serve as well.
constexpr bool holds_posix_segments(std::uint64_t free_bytes, int pes) {
  // A PE's segments have 2.2 MiB, and grow by as much when many messages are in flight at once. UCX itself does not
  // use `posix` below 16 MiB.
  constexpr std::uint64_t kBytesPerPe = std::uint64_t{8} << 20;
  constexpr std::uint64_t kReserveBytes = std::uint64_t{64} << 20;
  return free_bytes >= kReserveBytes + kBytesPerPe * static_cast<std::uint64_t>(pes);
}

// The same for the folder that UCX uses: UCX_POSIX_DIR, or /dev/shm. PEs of a host that come to different answers reach
// one another all the same: the difference is only whether a PE offers `sysv` as well.
bool has_room_for_posix(int pes_on_host);

}  // namespace weft::machine::ucx
