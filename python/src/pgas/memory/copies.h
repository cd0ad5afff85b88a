// weft.pgas.copy() and its kin.
//
// Threads: the PE's thread.
#pragma once

#include "engine/engine.h"
#include "pgas/memory/copy_reports.h"
#include "support/support.h"

namespace weft::python {

void init_copies(PyObject* module);

// Starts the copy of an array to or from a pointer. Returns a weft.Operation of `to` if that is an array, else of None. Throws
// base::Error, whose message begins with `use`.
Ref copy_between(Engine& engine, PyObject* from, PyObject* to, const CopyReports& reports, const char* use);

}  // namespace weft::python
