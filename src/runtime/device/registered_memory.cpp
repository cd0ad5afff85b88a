#include "weft/runtime/device/registered_memory.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/runtime.h"

#include "machine/machine.h"
#include "memory/memory.h"

namespace weft::runtime {

RegisteredMemory::RegisteredMemory(Runtime& runtime, const void* data, std::size_t size_bytes)
    : runtime_(runtime) {
  if (size_bytes == 0) return;  // nothing is ever inside it
  memory::Buffer buffer{const_cast<void*>(data), size_bytes, runtime.memory().place_of(data), nullptr};
  auto registered = runtime.machine().register_memory(buffer);
  if (!registered.ok()) base::throw_status(registered.status());
  memory_ = std::make_unique<machine::RemoteMemory>(std::move(registered).value());
}

RegisteredMemory::~RegisteredMemory() {
  // It can fail only for memory that is not registered.
  if (memory_ != nullptr) static_cast<void>(runtime_.machine().deregister_memory(*memory_));
}

}  // namespace weft::runtime
