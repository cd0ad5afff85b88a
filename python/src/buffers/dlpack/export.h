// DLPack as a producer: other libraries take the memory of Weft's arrays. The structures are in dlpack_abi.h.
#pragma once

#include "weft/memory/buffer.h"

#include "buffers/arrays/array_form.h"
#include "support/support.h"

namespace weft::python {

// The result of __dlpack_device__: (type, number). Throws PythonError (a BufferError) for memory that no other
// library can use.
Ref make_dlpack_device(const memory::Buffer& memory);
// The result of __dlpack__. `arguments` are stream, max_version, dl_device and copy; null if absent. `keeper` owns
// the memory. Throws PythonError (a BufferError) for memory that no other library can use, and if a copy or
// another device is requested.
Ref make_dlpack_capsule(const ArrayForm& form, const memory::Buffer& memory, Ref keeper,
                        const Arguments& arguments);

}  // namespace weft::python
