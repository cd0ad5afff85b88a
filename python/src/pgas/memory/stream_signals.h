// weft.pgas.signal_on_stream(), wait_on_stream() and wait_for().
//
// Threads: the PE's thread.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_stream_signals(PyObject* module);

}  // namespace weft::python
