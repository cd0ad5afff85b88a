#include "machine/peer_memory/mapping/process_copy.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/format.h"

namespace weft::machine {

using base::Status;
using base::StatusCode;

namespace {

Status failed(const char* what, std::int32_t pid, std::size_t size_bytes, ssize_t copied) {
  if (copied >= 0 || errno == EFAULT) {
    return {StatusCode::kCorrupt,
            base::format("process {} does not have the {} bytes of memory that it offered", pid, size_bytes)};
  }
  const int error = errno;
  return {error == ESRCH ? StatusCode::kPeerFailed : StatusCode::kUnsupported,
          base::format("{} process {}: {}", what, pid, std::generic_category().message(error))};
}

// The system copies at most some 2 GiB in one call; callers stay below.
Status finish(const char* what, std::int32_t pid, std::size_t size_bytes, ssize_t copied) {
  if (copied == static_cast<ssize_t>(size_bytes)) return {};
  return failed(what, pid, size_bytes, copied);
}

iovec remote_range(std::uint64_t address, std::size_t size_bytes) {
  return {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size_bytes};
}

}  // namespace

Status allow_process_copies() {
  // Refused where the system has no such rule, which is as good.
  static_cast<void>(::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0));
  std::uint64_t from = 1;
  std::uint64_t to = 0;
  const auto self = static_cast<std::int32_t>(::getpid());
  if (Status status = read_from_process(self, reinterpret_cast<std::uintptr_t>(&from), &to, sizeof to);
      status.failed())
    return {StatusCode::kUnsupported, std::string(status.message())};
  return write_to_process(self, reinterpret_cast<std::uintptr_t>(&to), &from, sizeof from);
}

Status read_from_process(std::int32_t pid, std::uint64_t remote, void* local, std::size_t size_bytes) {
  const iovec here{local, size_bytes};
  const iovec there = remote_range(remote, size_bytes);
  return finish("copying from", pid, size_bytes, ::process_vm_readv(pid, &here, 1, &there, 1, 0));
}

Status write_to_process(std::int32_t pid, std::uint64_t remote, const void* local, std::size_t size_bytes) {
  const iovec here{const_cast<void*>(local), size_bytes};
  const iovec there = remote_range(remote, size_bytes);
  return finish("copying to", pid, size_bytes, ::process_vm_writev(pid, &here, 1, &there, 1, 0));
}

Status probe_process(std::int32_t pid) {
  // No process has memory at address 0. The system looks for the process first; kill(2) would find one that is dead.
  std::byte byte{};
  const Status status = read_from_process(pid, 0, &byte, sizeof byte);
  return status.code() == StatusCode::kPeerFailed ? status : Status();
}

}  // namespace weft::machine
