// weft.nocopy, and the encoding of arguments that are sent in place: device memory, and arrays that weft.nocopy wraps.
#pragma once

#include "support/support.h"

namespace weft::python {

// REQUIRES: init_no_copy(), init_device_array() were called.
void init_in_place_arguments(PyObject* module);

}  // namespace weft::python
