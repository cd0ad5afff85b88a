// NumPy arrays: which arrays have an encoding of their own, making arrays, and finding the memory of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "buffers/arrays/array_form.h"
#include "buffers/arrays/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// Whether the object is an ndarray (no subclass) of a number type in native byte order, or of a type of
// element_types.h. Other arrays are pickled.
// False before NumPy is loaded.
bool is_plain_array(PyObject* object);
// Whether the object is an ndarray (no subclass) of integers, floats or complex numbers. False before NumPy is loaded.
bool is_array_of_numbers(PyObject* object);
// Whether the object is a plain array that owns its memory, and the caller's reference is the only one to it.
bool is_sole_owner(PyObject* object);

// A new array whose elements are not set. `fortran_order`: column-major.
Ref make_array(const ArrayForm& form, bool fortran_order = false);
// A new array over memory that `owner` keeps valid.
Ref make_array_over(const ArrayForm& form, void* data, Ref owner, bool fortran_order = false);

// Does the work of buffer_of for an ndarray of any type; returns false for other objects.
bool find_array_memory(const BufferRequest& request, ObjectBuffer& found);
// Does the work of buffer_of for an ndarray that is not C-contiguous, whose first element is at the found address. Returns false for a
// contiguous one.
bool find_strided_array_memory(const BufferRequest& request, ObjectBuffer& found,
                               std::vector<std::int64_t>& strides);

}  // namespace weft::python
