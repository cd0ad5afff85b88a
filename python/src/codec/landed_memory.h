// Memory in which a buffer beside a message has landed, as Python objects own it.
#pragma once

#include <memory>

#include "weft/runtime/attachment.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

void init_landed_memory(PyObject* module);

struct LandedMemory {
  // The engine is destroyed last: the memory goes back to its pool.
  EngineRef engine;
  runtime::Attachment attachment;
};

std::shared_ptr<LandedMemory> share_landed(Engine& engine, runtime::Attachment attachment);

// An object with the buffer protocol over the memory, writable: the base of a NumPy array, or of a memoryview.
// The memory is released on the PE's thread, whichever thread drops the object. REQUIRES: host memory.
Ref make_landed_bytes(Engine& engine, runtime::Attachment attachment);

}  // namespace weft::python
