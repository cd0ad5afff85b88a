// Landed attachments that Python objects own.
#pragma once

#include <memory>

#include "weft/runtime/attachment.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

void init_landed_memory(PyObject* module);

struct LandedMemory {
  // Destroyed last, because the memory returns to the engine's pool.
  EngineRef engine;
  runtime::Attachment attachment;
};

std::shared_ptr<LandedMemory> share_landed(Engine& engine, runtime::Attachment attachment);

// An object with the buffer protocol over the memory, writable: the base of a NumPy array, or of a
// memoryview. Any thread may drop the object; the PE's thread releases the memory. REQUIRES: host memory.
Ref make_landed_bytes(Engine& engine, runtime::Attachment attachment);

}  // namespace weft::python
