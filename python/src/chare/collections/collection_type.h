// The type weft.CollectionProxy, the base of weft.Array and weft.Group, as Python sees it.
#pragma once

#include "support/support.h"

namespace weft::python {

// REQUIRES: init_element_proxy() was called.
void init_collection_proxy(PyObject* module);

}  // namespace weft::python
