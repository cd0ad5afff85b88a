// The protocols by which other libraries use the memory of a weft.DeviceArray: the CUDA array interface, DLPack
// and the buffer protocol.
#pragma once

#include "support/support.h"

namespace weft::python {

// __cuda_array_interface__. Raises AttributeError for memory of another kind.
PyObject* device_array_interface(PyObject* self, void*);
PyObject* device_array_dlpack_device(PyObject* self, PyObject*);
// METH_FASTCALL | METH_KEYWORDS.
PyObject* device_array_dlpack(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names);
// bf_getbuffer and __array__, for host memory only.
int device_array_host_buffer(PyObject* self, Py_buffer* view, int flags);
PyObject* device_array_as_numpy(PyObject* self, PyObject* const*, Py_ssize_t, PyObject*);

}  // namespace weft::python
