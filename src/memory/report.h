// Which memory kinds this process can use, for people (`weft info`).
#pragma once

#include <string>
#include <vector>

#include "memory/memory.h"

namespace weft::memory {

// One line per kind: its devices, or why it cannot be used.
std::vector<std::string> report(Memory& memory);

}  // namespace weft::memory
