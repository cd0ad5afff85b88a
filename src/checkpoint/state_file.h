// A protected state as a file in memory, which a process hands over to the program that replaces it (exec).
//
// Threads: one at a time.
#pragma once

#include "weft/base/status.h"

#include "checkpoint/protected_state.h"

namespace weft::checkpoint_files {

// Returns the descriptor of a file without a name that has all blocks and the manifest of the state. It stays open over exec(). The
// caller owns it. Takes as much memory as the blocks.
base::Result<int> write_state_file(const ProtectedState& state);

// Adds what write_state_file() has written. The descriptor stays the caller's. kCorrupt if it is another file.
base::Status read_state_file(int descriptor, ProtectedState& state);

}  // namespace weft::checkpoint_files
