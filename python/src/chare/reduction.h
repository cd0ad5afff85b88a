// Reductions of Python values: what a weft.Reducer is in C++, and how contributions are merged on the way up the
// tree.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "weft/runtime/reduction.h"
#include "weft/runtime/target.h"

#include "chare/classes/chare.h"
#include "codec/result.h"
#include "support/support.h"

namespace weft::python {

// self.contribute(value, reducer, target) and self.allreduce(value, reducer), which returns a weft.Future. `value` and
// `reducer` may be null, like None.
void contribute_to_target(PyChare& chare, PyObject* value, PyObject* reducer, PyObject* target,
                          PyObject* section = nullptr);
Ref contribute_to_all(PyChare& chare, PyObject* value, PyObject* reducer);
// How a value is packed and merged. The packed result has the form `form`.
struct Contribution {
  runtime::Reducer reducer;
  ResultForm form;
  const runtime::Combiner* combiner;             // null: the values are gathered
  std::function<std::vector<std::byte>()> pack;  // throws PythonError or base::Error
};
// `value` and `reducer` may be null, like None; `value` is borrowed by `pack`. `who` says whose contribution it is, for
// errors. Throws PythonError or base::Error if the reducer is none.
Contribution contribution_of(PyObject* value, PyObject* reducer, std::function<std::string()> who);
// The target of a result without a value. Throws base::Error if the object is none.
runtime::Target target_without_value(PyObject* target);

}  // namespace weft::python
