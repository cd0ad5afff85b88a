// DLPack as a consumer: Weft takes the memory of arrays of PyTorch, JAX, CuPy and NumPy. The structures are in
// dlpack_abi.h.
#pragma once

#include "buffers/arrays/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// Does the work of buffer_of for objects whose type has DLPack's table of C functions (PyTorch from 2.10 on), which
// calls no Python; returns false for others. The buffer names the stream on which the producer queues its work now.
bool find_exchanged_memory(const BufferRequest& request, ObjectBuffer& found);

bool has_exchange_table(PyObject* object);

// Does the work of buffer_of for objects with __dlpack__; returns false for others. The producer's deleter is
// called once, when the last reference to the keeper is dropped.
bool find_dlpack_memory(const BufferRequest& request, ObjectBuffer& found);

// Whether an object that speaks DLPack reports a CUDA device.
bool is_on_dlpack_device(PyObject* object);

}  // namespace weft::python
