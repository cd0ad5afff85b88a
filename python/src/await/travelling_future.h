// How futures travel to other PEs: as their address, from where they are set there; or with the state of an element that moves, as
// copies that are awaited there. docs/decisions/migration.md has the cases.
#pragma once

#include <Python.h>

namespace weft::python {

// Adds the ways of weft.Future, which the module has: as a value of its own, and in a pickle.
void init_travelling_futures(PyObject* module);

}  // namespace weft::python
