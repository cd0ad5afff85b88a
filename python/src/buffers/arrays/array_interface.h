// The CUDA array interface, version 3: the protocol by which CuPy, Numba and PyTorch share CUDA memory.
#pragma once

#include "buffers/arrays/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// Does the work of buffer_of for objects with __cuda_array_interface__; returns false for others. Also returns
// false for an object with version 2 that has DLPack too, because version 2 does not name a stream and DLPack does.
bool find_cuda_array_memory(const BufferRequest& request, ObjectBuffer& found);

// The dict that an array of this form and memory exports. REQUIRES: CUDA memory.
Ref make_cuda_array_interface(const ArrayForm& form, const memory::Buffer& memory);

}  // namespace weft::python
