// The persistent form of an array in host memory: weft.register, of which weft/_registration.py is the rest.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_registration(PyObject* module);

}  // namespace weft::python
