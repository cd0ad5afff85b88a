// The memory kinds that this process can use, as text for people: `weft info` prints the report, and a job
// prints the warning when it starts.
#pragma once

#include <string>
#include <vector>

#include "memory/memory.h"

namespace weft::memory {

// One line per kind: its devices, or why it cannot be used.
std::vector<std::string> report(Memory& memory);

// Names the devices of this host's PEs that cannot access one another; empty if all can.
std::string peer_access_warning(Memory& memory, int num_local_pes);

}  // namespace weft::memory
