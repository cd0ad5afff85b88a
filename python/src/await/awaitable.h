// The slots of an awaitable of this extension. It yields itself to the scheduler while it is not ready (see
// wait_for), and hands its result over through am_send, so that no StopIteration is made.
#pragma once

#include "support/support.h"

namespace weft::python {

// Poll is `PySendResult (*)(PyObject* self, PyObject** result)`: kNEXT while it is not ready, else what it
// came to.
template <auto Poll>
struct AwaitableSlots {
  static PyObject* itself(PyObject* self) { return Py_NewRef(self); }

  static PySendResult send(PyObject* self, PyObject*, PyObject** result) {
    PySendResult outcome = Poll(self, result);
    if (outcome == PYGEN_NEXT) *result = Py_NewRef(self);
    return outcome;
  }

  // For interpreters that drive an await with next(), and for `yield from`.
  static PyObject* next(PyObject* self) {
    PyObject* result = nullptr;
    switch (Poll(self, &result)) {
      case PYGEN_NEXT:
        return Py_NewRef(self);
      case PYGEN_ERROR:
        return nullptr;
      case PYGEN_RETURN:
        break;
    }
    if (result != Py_None) {
      Ref stop = Ref::steal(PyObject_CallOneArg(PyExc_StopIteration, result));
      if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
    }  // without an exception the end of the iteration means None
    Py_DECREF(result);
    return nullptr;
  }
};

}  // namespace weft::python
