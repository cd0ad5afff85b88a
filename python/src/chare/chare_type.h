// weft.Chare as Python sees it.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_chare(PyObject* module);

}  // namespace weft::python
