// Load-balancing strategies for `weft lb`: a comparison on a recorded load file. Needs no job.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_load_balancing(PyObject* module);

}  // namespace weft::python
