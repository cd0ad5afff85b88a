// Makes kind host, which every process has.
#include <memory>

#include "memory/kind_factory.h"
#include "memory/kinds/host/host_backend.h"

namespace weft::memory {

namespace {

base::Result<std::unique_ptr<KindBackend>> make_host(const MemoryOptions&) {
  return std::unique_ptr<KindBackend>(std::make_unique<HostBackend>());
}

}  // namespace

const KindFactory kinds::host = {NativeApi::kHost, nullptr, &make_host};

}  // namespace weft::memory
