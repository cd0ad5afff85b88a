// weft.DeviceArray as Python sees it.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_device_array(PyObject* module);

}  // namespace weft::python
