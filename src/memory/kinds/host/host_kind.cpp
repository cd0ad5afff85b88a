// Makes kind host, which every process has.
#include <memory>

#include "memory/kinds/host/host_backend.h"
#include "memory/kinds/kind_factory.h"

namespace weft::memory {

namespace {

base::Result<std::unique_ptr<KindBackend>> make_host(const MemoryOptions&) {
  return std::unique_ptr<KindBackend>(std::make_unique<HostBackend>());
}

}  // namespace

const KindFactory kinds::host = {NativeApi::kHost, nullptr, &make_host};

}  // namespace weft::memory
