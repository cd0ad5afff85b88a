// DLPack, given: how other libraries take the memory of our arrays. Structures: dlpack_abi.h.
#pragma once

#include "weft/memory/buffer.h"

#include "buffers/array_form.h"
#include "support/support.h"

namespace weft::python {

// __dlpack_device__: (type, number). Throws PythonError, a BufferError, for memory that no other library can
// use.
Ref make_dlpack_device(const memory::Buffer& memory);
// __dlpack__. `arguments`: stream, max_version, dl_device and copy, null where absent. `keeper` owns the memory.
// Throws PythonError, a BufferError, as above and if a copy or another device is asked for.
Ref make_dlpack_capsule(const ArrayForm& form, const memory::Buffer& memory, Ref keeper,
                        const Arguments& arguments);

}  // namespace weft::python
