// Makes kind emulated, which every process has, and reads WEFT_EMULATED_FAULTS.
#include <cstdlib>
#include <memory>

#include "base/format.h"
#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/kinds/emulated/emulated_options.h"
#include "memory/kinds/kind_factory.h"
#include "memory/kinds/memory_options.h"

namespace weft::memory {

using base::Result;
using base::Status;

namespace {

Status read_emulated_environment(MemoryOptions& options) {
  const char* const text = std::getenv("WEFT_EMULATED_FAULTS");
  if (text == nullptr) return {};
  Result<EmulatedFaults> faults = parse_emulated_faults(text);
  if (!faults.ok()) {
    return Status(faults.status().code(),
                  base::format("WEFT_EMULATED_FAULTS: {}", faults.status().message()));
  }
  options.of<EmulatedOptions>().faults = *faults;
  return {};
}

Result<std::unique_ptr<KindBackend>> make_emulated(const MemoryOptions& options) {
  const EmulatedOptions emulated = options.of<EmulatedOptions>();
  return std::unique_ptr<KindBackend>(
      std::make_unique<EmulatedBackend>(emulated.num_devices, emulated.faults));
}

}  // namespace

const KindFactory kinds::emulated = {NativeApi::kNone, &read_emulated_environment, &make_emulated};

}  // namespace weft::memory
