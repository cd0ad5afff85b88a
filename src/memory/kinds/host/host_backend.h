// Ordinary host memory. The CPU copies when it is polled, so host code follows the same rule as device code:
// a copy is done when its completion is called, and not before.
#pragma once

#include "memory/kinds/software/software_kind.h"

namespace weft::memory {

class HostBackend final : public SoftwareKind {
 public:
  HostBackend() : SoftwareKind(Kind::kHost, 1) {}

  std::string device_name(int) const override { return "host memory"; }
  bool cpu_accessible() const override { return true; }

  base::Result<void*> allocate(std::size_t size_bytes, int device) override;
  base::Status deallocate(void* data) override;
  // An address that no device kind knows is host memory. Host allocations are not tracked.
  std::optional<Allocation> find_allocation(const void*) override { return std::nullopt; }
  bool is_current(const Allocation&, const void*) override { return false; }

  base::Status copy_async(void* destination, Place destination_place, const void* source, Place source_place,
                          std::size_t size_bytes, StreamHandle stream) override;
  base::Result<void*> allocate_host(std::size_t size_bytes, int) override { return allocate(size_bytes, 0); }
  void deallocate_host(void* data) override;
};

}  // namespace weft::memory
