// DeviceArray.copy_from and DeviceArray.to_host.
#pragma once

#include "support/support.h"

namespace weft::python {

// METH_FASTCALL | METH_KEYWORDS. Both return a weft.Operation.
PyObject* copy_into_device_array(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names);
PyObject* copy_device_array_to_host(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                    PyObject* names);

}  // namespace weft::python
