// weft.pgas.put() and get(): single elements, and arrays.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_put_get(PyObject* module);

}  // namespace weft::python
