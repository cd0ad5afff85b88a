// Buffers that travel in place, beside a message, and the memory in which they land.
#pragma once

#include <memory>

#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"

#include "job/engine.h"
#include "support/support.h"

namespace weft::python {

// From here on a host buffer of an entry method's arguments is sent in place: below it one copy into the
// message is cheaper than a message of its own.
inline constexpr std::size_t kInPlaceBytes = std::size_t{64} << 10;

// `keeper` owns the memory; it is dropped when the buffer is free again.
runtime::Attachment attach(Ref keeper, const memory::Buffer& memory);

// What owns landed memory: a capsule for a NumPy array's base, and a share for a DeviceArray. Through the
// second, work on `stream` can be made to come before the memory is used again.
Ref make_memory_owner(Engine& engine, runtime::Attachment attachment);
struct LandedMemory {
  // The engine last: the memory goes back to its pool.
  EngineRef engine;
  runtime::Attachment attachment;
};
std::shared_ptr<LandedMemory> share_landed(Engine& engine, runtime::Attachment attachment);

}  // namespace weft::python
