// The functions of weft.emulated: kernels of emulated devices that are Python functions, and simulated faults.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_emulated(PyObject* module);

}  // namespace weft::python
