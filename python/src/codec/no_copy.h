// The result of weft.nocopy: a wrapper around an array that is sent in place.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_no_copy(PyObject* module);

Ref make_no_copy(Ref array);
PyTypeObject* no_copy_type();
bool is_no_copy(PyObject* object);
// The array in it. REQUIRES: is_no_copy(object).
PyObject* no_copy_array(PyObject* object);

}  // namespace weft::python
