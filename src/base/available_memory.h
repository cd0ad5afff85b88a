// How much memory this process may still take.
//
// Threads: any.
#pragma once

#include <cstddef>

namespace weft::base {

// The smallest of: the host's physical memory, the limit of its container, and what the limit of the address space
// (RLIMIT_AS) leaves. At least 1 byte.
std::size_t available_memory_bytes();

}  // namespace weft::base
