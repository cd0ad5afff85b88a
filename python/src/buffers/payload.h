// weft.nocopy, and the wire form of arguments that are sent in place: device memory, and arrays that weft.nocopy
// wraps.
#pragma once

#include "support/support.h"

namespace weft::python {

// REQUIRES: init_no_copy(), init_device_array() were called.
void init_payload(PyObject* module);

}  // namespace weft::python
