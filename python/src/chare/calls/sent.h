// What a call without a result gives if its arguments are all in the message: it can be awaited, to stay below the first
// watermark of flow control.
#pragma once

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

void init_sent(PyObject* module);

// Ready when the PE that was called, or all PEs if `pe` is -1, is not past the first watermark.
Ref make_sent(Engine& engine, int pe);

}  // namespace weft::python
