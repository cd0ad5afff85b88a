// weft._core._separate(values): a list whose values are independent. Two of them that are, or hold, the same object arrive as two.
//
// The pool sends items and results of several tasks in one message with it: a task must not see what another one changes.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_separate_values(PyObject* module);

}  // namespace weft::python
