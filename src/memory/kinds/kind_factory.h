// KindFactory makes a memory kind: there is one constant per folder of src/memory/kinds/, found by the list in
// include/weft/memory/kinds.h.
#pragma once

#include <memory>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/memory/kinds.h"

#include "memory/kinds/kind.h"
#include "memory/kinds/native_api.h"

namespace weft::memory {

class MemoryOptions;

struct KindFactory {
  NativeApi native_api = NativeApi::kNone;
  // Reads the kind's environment variables into its own options; null when it has none. kInvalidArgument for
  // a value that the kind does not understand.
  base::Status (*read_environment)(MemoryOptions& options) = nullptr;
  // kUnsupported: this process cannot use the kind, and the options do not ask for it. Any other failure: the
  // options ask for something that this process does not have, so its job must not start.
  base::Result<std::unique_ptr<KindBackend>> (*make)(const MemoryOptions& options) = nullptr;
};

namespace kinds {
#define WEFT_DECLARE_FACTORY(enumerator, name) extern const KindFactory name;
WEFT_FOR_EACH_MEMORY_KIND(WEFT_DECLARE_FACTORY)
#undef WEFT_DECLARE_FACTORY
}  // namespace kinds

const KindFactory& factory_of(Kind kind);

}  // namespace weft::memory
