// A counter of this process that rises before memory is unmapped or other pages are mapped over it, for the
// memory layer. It counts events of UCX's memory hooks.
//
// UCX patches munmap(), mremap(), mmap(), madvise(), shmdt() and brk() of the C library when it is loaded.
// Calls that the C library makes itself come through them too: free() of a large block, the end of a thread's
// stack. dlclose() and system calls of a program's own do not.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::machine::ucx {

// The counter; null if not all unmappings would raise it: the hooks are not there (UCX_MEM_EVENTS=no,
// UCX_MEM_MMAP_HOOK_MODE=none), are not in the C library's functions (reloc), or the process's malloc() unmaps
// by system calls of its own. The first call installs the handler and tries it; the other ones only return.
// The counter exists until this library is unloaded.
const std::atomic<std::uint64_t>* unmap_generation();

}  // namespace weft::machine::ucx
