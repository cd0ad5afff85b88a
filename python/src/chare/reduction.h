// Reductions of Python values: what a weft.Reducer is in C++, and how contributions are merged on the way up the
// tree.
#pragma once

#include "chare/chare.h"
#include "support/support.h"

namespace weft::python {

// self.contribute(value, reducer, target) and self.allreduce(value, reducer), which returns a weft.Future. `value` and
// `reducer` may be null, like None.
void contribute_to_target(PyChare& chare, PyObject* value, PyObject* reducer, PyObject* target);
Ref contribute_to_all(PyChare& chare, PyObject* value, PyObject* reducer);

}  // namespace weft::python
