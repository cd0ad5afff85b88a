#include "engine/ending.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "support/errors.h"

namespace weft::python {

namespace {

PyObject* terminated_type = nullptr;

// REQUIRES: the current exception is SystemExit, which is cleared. The exit code as the interpreter takes it:
// None is 0, an int is itself, anything else is printed and is 1.
int take_exit_code() {
  Ref exit = PythonError::take();
  Ref code = Ref::steal(PyObject_GetAttrString(exit.get(), "code"));
  if (!code) PyErr_Clear();
  if (!code || code.get() == Py_None) return 0;
  if (PyLong_Check(code.get()) != 0) {
    const long number = PyLong_AsLong(code.get());  // -1 if it does not fit, as in the interpreter
    PyErr_Clear();
    return static_cast<int>(number & 0xff);
  }
  PySys_FormatStderr("%s\n", readable(code.get()).c_str());
  return 1;
}

void flush(const char* stream_name) {
  PyObject* stream = PySys_GetObject(stream_name);  // borrowed
  if (stream == nullptr || stream == Py_None) return;
  Ref done = Ref::steal(PyObject_CallMethod(stream, "flush", nullptr));
  if (!done) PyErr_Clear();
}

}  // namespace

bool interrupted_by_exception(Engine& engine) {
  const bool is_interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
  if (!is_interrupt && PyErr_ExceptionMatches(terminated_type) == 0) return false;
  PyErr_Clear();
  engine.interrupt(is_interrupt ? SIGINT : SIGTERM);
  return true;
}

bool ended_by_exception(Engine& engine) {
  end_if_forked();
  if (interrupted_by_exception(engine)) return true;
  if (PyErr_ExceptionMatches(PyExc_SystemExit) == 0) return false;
  engine.runtime().exit(take_exit_code());
  return true;
}

void end_by_exception(Engine& engine, const std::string& where) {
  if (ended_by_exception(engine)) return;
  Ref exception = PythonError::take();
  engine.runtime().fail_unawaited(as_travelling_error(exception.get()), where);
}

void end_by_exception_of_main(Engine& engine, bool is_one_of_many) {
  if (ended_by_exception(engine)) return;
  Ref error = PythonError::take();
  if (!is_one_of_many || !engine.runtime().must_end()) engine.end_by_main(std::move(error));
}

void init_ending(PyObject* module) {
  terminated_type = PyErr_NewException("weft._core._Terminated", PyExc_SystemExit, nullptr);
  checked(PyModule_AddObjectRef(module, "_Terminated", terminated_type));
}

void end_forked_child() {
  int code = 1;
  if (PyErr_Occurred() == nullptr) {
    PySys_WriteStderr(
        "weft: a process that was forked in an entry method, in main or in a callback returned from it; the "
        "job continues in its parent. End the process there with sys.exit() or os._exit()\n");
  } else if (PyErr_ExceptionMatches(PyExc_SystemExit) != 0) {
    code = take_exit_code();
  } else {
    PyErr_Print();
  }
  Ref atexit = Ref::steal(PyImport_ImportModule("atexit"));
  Ref ran = atexit ? Ref::steal(PyObject_CallMethod(atexit.get(), "_run_exitfuncs", nullptr)) : Ref();
  if (!ran) PyErr_Clear();
  flush("stdout");
  flush("stderr");
  _exit(code);
}

}  // namespace weft::python
