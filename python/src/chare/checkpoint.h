// The functions of the extension that weft.checkpoint(), weft.restore() and weft.has_checkpoint() call.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_checkpoint(PyObject* module);

}  // namespace weft::python
