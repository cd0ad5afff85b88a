// The registration of an array's memory with the network, for weft.register. The other part is
// weft/_buffers/registration.py.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_registration(PyObject* module);

}  // namespace weft::python
