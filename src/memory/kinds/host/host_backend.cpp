#include "memory/kinds/host/host_backend.h"

#include <cstdlib>
#include <cstring>

#include "base/format.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {
constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector registers
}

Result<void*> HostBackend::allocate(std::size_t size_bytes, int) {
  void* data = nullptr;
  if (::posix_memalign(&data, kAlignment, size_bytes == 0 ? 1 : size_bytes) != 0) {
    return Status(StatusCode::kOutOfMemory, base::format("no host memory for {} bytes", size_bytes));
  }
  return data;
}

Status HostBackend::deallocate(void* data) {
  std::free(data);
  return {};
}

void HostBackend::deallocate_host(void* data) { std::free(data); }

Status HostBackend::copy_async(void* destination, Place destination_place, const void* source,
                               Place source_place, std::size_t size_bytes, StreamHandle stream) {
  if (!destination_place.is_host() || !source_place.is_host()) {
    return Status(StatusCode::kInvalidArgument,
                  base::format("the host kind cannot copy {} bytes from {} to {}", size_bytes,
                               place_name(source_place), place_name(destination_place)));
  }
  const auto work = [=] {
    if (size_bytes > 0) std::memcpy(destination, source, size_bytes);
    return Status();
  };
  return streams_.enqueue(stream, 0, work);
}

}  // namespace weft::memory
