// Copies between the memory of this process and that of another process of the host, by the system.
//
// Source: process_vm_readv(2). The caller needs the right to trace the other process: the same user, and no stricter
// rule of the system (seccomp, ptrace scope).
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/status.h"

namespace weft::machine {

// Lets the other processes of the user copy from and to this one where the system asks for it (ptrace scope 1), and
// tries a copy within this process. kUnsupported, with the reason, if the system refuses.
base::Status allow_process_copies();

// Copies `size_bytes` from `remote` in process `pid`, or to it. kPeerFailed if the process has gone, kCorrupt if it has
// no such memory, kUnsupported if the system refuses.
base::Status read_from_process(std::int32_t pid, std::uint64_t remote, void* local, std::size_t size_bytes);
base::Status write_to_process(std::int32_t pid, std::uint64_t remote, const void* local,
                              std::size_t size_bytes);

// kPeerFailed if the process has ended, also if its parent does not know that yet. Takes a system call.
base::Status probe_process(std::int32_t pid);

}  // namespace weft::machine
