// weft.run and the functions that ask or steer the running job.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_run(PyObject* module);

}  // namespace weft::python
