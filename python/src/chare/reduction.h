// Reductions of Python values: what a weft.Reducer is in C++, and how contributions are merged on the way up the
// tree.
#pragma once

#include "weft/runtime/target.h"

#include "chare/chare.h"
#include "support/support.h"

namespace weft::python {

// self.contribute(value, reducer, target) and self.allreduce(value, reducer), which returns a weft.Future. `value` and
// `reducer` may be null, like None.
void contribute_to_target(PyChare& chare, PyObject* value, PyObject* reducer, PyObject* target,
                          PyObject* section = nullptr);
Ref contribute_to_all(PyChare& chare, PyObject* value, PyObject* reducer);
// The target of a result without a value. Throws base::Error if the object is none.
runtime::Target target_without_value(PyObject* target);

}  // namespace weft::python
