// Chare.device_work(): a context manager whose body is device work of a chare. See weft/chare/device_work.h.
//
// Threads: the PE's thread.
#pragma once

#include "chare/classes/chare.h"
#include "support/support.h"

namespace weft::python {

void init_device_work(PyObject* module);

// `stream` and `kind` may be null. Throws base::Error.
Ref make_device_work(PyChare& chare, PyObject* stream, PyObject* kind);

}  // namespace weft::python
