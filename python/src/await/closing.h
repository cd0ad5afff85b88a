// The end of asynchronous generators that were left before their end (python/weft/_await/async_generators.py).
#pragma once

#include "support/support.h"

namespace weft::python {

void init_closing(PyObject* module);

}  // namespace weft::python
