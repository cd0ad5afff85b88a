// The CUDA array interface, version 3: how CuPy, Numba and PyTorch name CUDA memory to one another.
#pragma once

#include "buffers/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// As buffer_of, for objects with __cuda_array_interface__; false for others, and for those of version 2,
// which says nothing about streams, when DLPack does.
bool find_cuda_array_memory(const BufferRequest& request, ObjectBuffer& found);

// What an array of that form and memory exports. REQUIRES: CUDA memory.
Ref make_cuda_array_interface(const ArrayForm& form, const memory::Buffer& memory);

}  // namespace weft::python
