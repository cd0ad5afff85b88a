// DLPack: how PyTorch, JAX, CuPy and NumPy hand arrays to one another. Structures: dlpack_abi.h.
#pragma once

#include "buffers/object_buffer.h"
#include "support/support.h"

namespace weft::python {

// As buffer_of, for objects with __dlpack__; false for others. The producer's deleter is called once, when
// the keeper goes.
bool find_dlpack_memory(const BufferRequest& request, ObjectBuffer& found);

// Whether an object with __dlpack__ says that it is on a CUDA device.
bool is_on_dlpack_device(PyObject* object);

// What an array exports. Both raise Python's BufferError for memory that no other library can use.
Ref make_dlpack_device(const memory::Buffer& memory);
// `arguments`: stream, max_version, dl_device and copy of __dlpack__, null where absent. `keeper` owns the
// memory.
Ref make_dlpack_capsule(const ArrayForm& form, const memory::Buffer& memory, Ref keeper,
                        const Arguments& arguments);

}  // namespace weft::python
