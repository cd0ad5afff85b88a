// weft.Channel.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_channel(PyObject* module);

}  // namespace weft::python
