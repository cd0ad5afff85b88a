// How the elements of an array are reduced, by their dtype.
#pragma once

#include "weft/pgas/element_combine.h"
#include "weft/runtime/reduction.h"

#include "buffers/arrays/buffer_request.h"
#include "support/support.h"

namespace weft::python {

// Throws base::Error if the elements are no integers, floats or bools of the machine, or if sums of bools are asked for, which an
// array of bools cannot hold. `use`: the caller's name.
pgas::ElementCombine array_combine(const ArrayForm& form, runtime::Reducer reducer, const char* use);
// The reducer of a weft.Reducer that works in place. Throws base::Error for gather, concat and custom.
runtime::Reducer in_place_reducer(PyObject* reducer, const char* use);

}  // namespace weft::python
