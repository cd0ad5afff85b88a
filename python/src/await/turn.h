// weft.yield_now() and weft.progress().
#pragma once

#include "support/support.h"

namespace weft::python {

void init_turn(PyObject* module);

}  // namespace weft::python
