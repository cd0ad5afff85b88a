// The memory file system in which UCX makes its shared-memory segments: whether they fit, and what happens when it is full.
//
// UCX has two shared-memory transports of the same speed. Weft uses `posix`, whose segments the user alone can open
// (transport_list.h). UCX writes each segment when it makes it, so no page of it can be missing later.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "weft/base/status.h"

namespace weft::machine::ucx {

// The bytes of a PE's segments at its start: a queue, and a buffer for each of its elements. UCX adds as many buffers
// again whenever all are in use by messages that have not been received.
std::uint64_t segment_bytes();

// Whether the segments of one PE fit in the folder that UCX uses (UCX_POSIX_DIR, or /dev/shm) now. The sentence says
// what is free, and what the PEs of this host need.
base::Status check_room_for_segments(int pes_on_host);
// As check_room_for_segments() if UCX makes segments there, which it does if `posix` is among the transports that it has opened.
base::Status check_shared_memory(const std::set<std::string>& transports, int pes_on_host);

// From now on, the process ends with a sentence when UCX cannot add buffers, because UCX would lose messages. UCX tells it in
// a line of its log alone.
void end_process_when_full(int pe, int pes_on_host);

}  // namespace weft::machine::ucx
