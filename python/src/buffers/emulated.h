// Kernels and faults of the emulated devices, for Python.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_emulated(PyObject* module);

}  // namespace weft::python
