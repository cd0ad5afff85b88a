// weft._Sent: the result of a call that returns nothing, if its arguments are all in the message. An await of it waits for the first
// watermark of flow control.
#pragma once

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

void init_sent(PyObject* module);

// Ready when the PE that was called, or all PEs if `pe` is -1, is not past the first watermark.
Ref make_sent(Engine& engine, int pe);

}  // namespace weft::python
