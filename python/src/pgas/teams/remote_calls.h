// Calls of Python functions on other ranks: team.rpc(rank, function, ...).
//
// All of them are calls of one C++ function, whose arguments name the Python function and the distributed objects among its
// arguments. A call waits at its target until these objects exist there.
#pragma once

#include "weft/pgas/team.h"
#include "weft/rma/completions.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// `arguments`: a tuple; `keywords`: a dict or null. Throws PythonError or base::Error.
Ref call_remotely(Engine& engine, const pgas::Team& team, int rank, PyObject* function, PyObject* arguments,
                  PyObject* keywords);
void call_remotely_ff(const pgas::Team& team, int rank, PyObject* function, PyObject* arguments,
                      PyObject* keywords);
// The call of function(*arguments) behind a copy, on the PE of the copy's target, where nothing waits for its result. `what` says
// whose function it is. Throws base::Error.
rma::RemoteCompletion pack_remote_call(PyObject* function, PyObject* arguments, const char* what);

}  // namespace weft::python
