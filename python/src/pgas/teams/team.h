// weft.pgas.Team.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_team(PyObject* module);

}  // namespace weft::python
