// Which memory kinds this process can use, for people (`weft info`), and
// what of it is worth a warning.
#pragma once

#include <string>
#include <vector>

#include "memory/memory.h"

namespace weft::memory {

// One line per kind: its devices, or why it cannot be used.
std::vector<std::string> report(Memory& memory);

// Says which of the GPUs that the PEs of this host use do not reach one another; empty when all do.
std::string peer_access_warning(Memory& memory, int num_local_pes);

}  // namespace weft::memory
