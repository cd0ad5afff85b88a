// Collective operations in a job of weft.run, whose main runs on PE 0 alone.
//
// All PEs of a team take part in its collective operations. A main that runs alone and awaits one may therefore wait for ever.
// weft/_pgas/lone_main.py says so after some time. Threads: the PE's.
#pragma once

#include "support/support.h"

namespace weft::python {

// Call it behind the start of a collective operation: `team` is a weft.pgas.Team, `future` what the call returns, and `use`
// the name of the call. It does nothing if no main runs alone on this PE.
void watch_lone_main(PyObject* team, const Ref& future, const char* use);

void init_lone_main(PyObject* module);

}  // namespace weft::python
