#include "memory/kinds/memory_options.h"

#include "memory/kinds/kind_factory.h"

namespace weft::memory {

base::Result<MemoryOptions> MemoryOptions::from_environment(int local_rank) {
  MemoryOptions options;
  options.local_rank = local_rank;
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const KindFactory& factory = factory_of(static_cast<Kind>(kind));
    if (factory.read_environment == nullptr) continue;
    if (base::Status status = factory.read_environment(options); status.failed()) return status;
  }
  return options;
}

}  // namespace weft::memory
