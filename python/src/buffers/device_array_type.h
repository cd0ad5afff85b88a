// The Python type weft.DeviceArray: constructor, attributes, methods and docstrings.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_device_array(PyObject* module);

}  // namespace weft::python
