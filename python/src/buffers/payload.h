// weft.nocopy, and arrays that travel in place as arguments of entry methods: device memory, and what weft.nocopy
// marks.
#pragma once

#include "support/support.h"

namespace weft::python {

// REQUIRES: init_no_copy(), init_device_array() were called.
void init_payload(PyObject* module);

}  // namespace weft::python
