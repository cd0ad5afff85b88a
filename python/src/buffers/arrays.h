// NumPy arrays: which ones travel in a form of their own, new ones, and their memory.
#pragma once

#include <cstddef>

#include "buffers/array_form.h"
#include "buffers/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// An ndarray (no subclass) of a number type in native byte order. Others are pickled. False before NumPy is
// loaded.
bool is_plain_array(PyObject* object);
// Whether the reference at hand is the only one to a plain array that owns its memory.
bool is_sole_owner(PyObject* object);

// A new array; its elements are not set. `fortran_order`: column-major.
Ref make_array(const ArrayForm& form, bool fortran_order = false);
// One over memory that `owner` keeps.
Ref make_array_over(const ArrayForm& form, void* data, Ref owner, bool fortran_order = false);

// The memory of an ndarray of any type; false for other objects. Throws base::Error as buffer_of does.
bool find_array_memory(const BufferRequest& request, ObjectBuffer& found);

}  // namespace weft::python
