// Finds the memory of any object: weft.DeviceArray, NumPy arrays, the buffer protocol, the CUDA array interface
// (version 3) and DLPack (1.1 and before).
//
// Finding memory copies nothing and does not wait. The stream that a producer names becomes the buffer's stream, so
// operations on the buffer start after the work that is queued on it. Only C-contiguous memory is accepted. A
// tensor that requires grad is detached: its memory travels, and what is received is not seen by autograd.
//
// Threads: the PE's thread.
#pragma once

#include "buffers/arrays/buffer_request.h"
#include "support/support.h"

namespace weft::python {

void init_object_buffer(PyObject* module);

// Throws PythonError, or base::Error with advice, if
//   - the object has no memory,
//   - the memory is not contiguous,
//   - the memory is read-only and the access is kWrite, or
//   - this process cannot use the memory's kind.
ObjectBuffer buffer_of(const BufferRequest& request);

// Whether an object is an array in device memory: a weft.DeviceArray, or an array of another library with the CUDA
// array interface or DLPack.
bool is_device_object(PyObject* object);

}  // namespace weft::python
