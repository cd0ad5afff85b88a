// DLPack, taken from PyTorch, JAX, CuPy or NumPy: the memory of their arrays. Structures: dlpack_abi.h.
#pragma once

#include "buffers/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// As buffer_of, for objects with __dlpack__; false for others. The producer's deleter is called once, when the
// keeper is dropped.
bool find_dlpack_memory(const BufferRequest& request, ObjectBuffer& found);

// Whether an object with __dlpack__ says that it is on a CUDA device.
bool is_on_dlpack_device(PyObject* object);

}  // namespace weft::python
