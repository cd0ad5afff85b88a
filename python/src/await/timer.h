// weft.sleep(), and timers that the package may take back.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_timer(PyObject* module);

}  // namespace weft::python
