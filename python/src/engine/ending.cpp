#include "engine/ending.h"

#include "support/errors.h"

namespace weft::python {

bool ended_by_exception(Engine& engine) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
    PyErr_Clear();
    engine.interrupt();
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_SystemExit) == 0) return false;
  Ref exit = PythonError::take();
  Ref code = Ref::steal(PyObject_GetAttrString(exit.get(), "code"));
  if (!code || code.get() == Py_None) {
    engine.runtime().exit(0);
  } else if (PyLong_Check(code.get())) {
    engine.runtime().exit(static_cast<int>(PyLong_AsLong(code.get())));
  } else {
    PySys_FormatStderr("%s\n", readable(code.get()).c_str());
    engine.runtime().exit(1);
  }
  PyErr_Clear();
  return true;
}

void end_by_exception(Engine& engine, const std::string& where) {
  if (ended_by_exception(engine)) return;
  Ref exception = PythonError::take();
  engine.runtime().fail_unawaited(as_travelling_error(exception.get()), where);
}

}  // namespace weft::python
