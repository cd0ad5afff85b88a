// The collective methods of weft.pgas.Team; team.cpp has their table and what programs read about them.
#pragma once

#include "support/support.h"

namespace weft::python {

PyObject* team_barrier(PyObject* self, PyObject*);
PyObject* team_blocking_barrier(PyObject* self, PyObject*);
PyObject* team_broadcast(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords);
PyObject* team_reduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords);
PyObject* team_allreduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords);
PyObject* team_allgather(PyObject* self, PyObject* value);

// The array takes the result.
PyObject* team_broadcast_in_place(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                  PyObject* keywords);
PyObject* team_reduce_in_place(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords);
PyObject* team_allreduce_in_place(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                  PyObject* keywords);

}  // namespace weft::python
