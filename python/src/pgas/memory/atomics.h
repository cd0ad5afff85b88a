// The atomic operations of weft.pgas.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_atomics(PyObject* module);

}  // namespace weft::python
