// Operations of the PE's memory layer for Python: copies and waits for streams.
#pragma once

#include "weft/memory/buffer.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// Both return a weft.Operation, which keeps `keepers` until it is over and gives `result`. Throw base::Error.
Ref start_copy(Engine& engine, const memory::Buffer& destination, const memory::ConstBuffer& source,
               Ref keepers, Ref result);
Ref start_stream_wait(Engine& engine, memory::Place place, memory::StreamHandle stream, Ref keepers);

}  // namespace weft::python
