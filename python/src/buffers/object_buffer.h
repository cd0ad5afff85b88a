// Any object's memory as a buffer: weft.DeviceArray, NumPy arrays, the buffer protocol, the CUDA array
// interface (version 3) and DLPack (with and without version).
//
// Nothing is copied and nothing waits. The stream that a producer names becomes the buffer's, so whatever uses
// the buffer starts after the work that is queued there. Only C-contiguous memory is a buffer.
#pragma once

#include "buffers/buffer_request.h"
#include "support/support.h"

namespace weft::python {

void init_object_buffer(PyObject* module);

// Throws PythonError, or base::Error that names the fix: the memory is not contiguous, is read-only and is to be
// written, is of a kind that this process cannot use, or the object has none.
ObjectBuffer buffer_of(const BufferRequest& request);

// Whether an object is device memory: a weft.DeviceArray, or an array of another library by the CUDA array
// interface or DLPack.
bool is_device_object(PyObject* object);

}  // namespace weft::python
