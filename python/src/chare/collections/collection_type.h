// weft.CollectionProxy, weft.Array, weft.Group and weft.Singleton as Python sees them.
#pragma once

#include "support/support.h"

namespace weft::python {

// REQUIRES: init_element_proxy() was called.
void init_collection_proxy(PyObject* module);

}  // namespace weft::python
