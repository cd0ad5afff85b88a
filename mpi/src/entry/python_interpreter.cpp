#include "entry/python_interpreter.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

namespace {

struct PythonObject;  // PyObject

// PyMethodDef.
struct PythonMethod {
  const char* name;
  PythonObject* (*function)(PythonObject* self, PythonObject* arguments);
  int flags;
  const char* documentation;
};
constexpr int kTakesArguments = 1;  // METH_VARARGS

// The functions that are needed here; all are there, or none is used.
struct Python {
  int (*is_initialized)() = nullptr;
  int (*begin_use)() = nullptr;  // an enumeration: the state for end_use
  void (*end_use)(int state) = nullptr;
  PythonObject* (*system_value)(const char* name) = nullptr;  // a borrowed reference
  int (*set_system_value)(const char* name, PythonObject* value) = nullptr;
  PythonObject* (*make_function)(PythonMethod* method, PythonObject* self, PythonObject* module) = nullptr;
  PythonObject* (*call)(PythonObject* function, PythonObject* arguments) = nullptr;
  PythonObject* (*call_method)(PythonObject* object, const char* name, const char* format, ...) = nullptr;
  PythonObject* (*tuple_item)(PythonObject* tuple, std::ptrdiff_t index) = nullptr;       // borrowed
  PythonObject* (*dictionary_item)(PythonObject* dictionary, const char* key) = nullptr;  // borrowed
  void (*acquire)(PythonObject* object) = nullptr;
  void (*release)(PythonObject* object) = nullptr;
  void (*clear_error)() = nullptr;
  bool is_complete = true;

  Python() {
    find(is_initialized, "Py_IsInitialized");
    find(begin_use, "PyGILState_Ensure");
    find(end_use, "PyGILState_Release");
    find(system_value, "PySys_GetObject");
    find(set_system_value, "PySys_SetObject");
    find(make_function, "PyCFunction_NewEx");
    find(call, "PyObject_CallObject");
    find(call_method, "PyObject_CallMethod");
    find(tuple_item, "PyTuple_GetItem");
    find(dictionary_item, "PyDict_GetItemString");
    find(acquire, "Py_IncRef");
    find(release, "Py_DecRef");
    find(clear_error, "PyErr_Clear");
  }
  bool runs() const { return is_complete && is_initialized() != 0; }

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    is_complete = is_complete && function != nullptr;
  }
};

const Python& python() {
  static const Python found;
  return found;
}

std::atomic<bool> has_failed = false;
PythonObject* hook_before = nullptr;  // sys.excepthook before ours; set once
pid_t watched_process = 0;            // not its forks

// The job ends without the interpreter's own end, which would write what is left.
void flush(const char* stream) {
  PythonObject* const file = python().system_value(stream);
  PythonObject* const done = file == nullptr ? nullptr : python().call_method(file, "flush", nullptr);
  if (done == nullptr) {
    python().clear_error();
  } else {
    python().release(done);
  }
}

// sys.excepthook(kind, value, traceback). Returns what the hook before has returned, or null with its exception.
PythonObject* on_exception(PythonObject* /*self*/, PythonObject* arguments) {
  PythonObject* const result = python().call(hook_before, arguments);
  if (result == nullptr) return nullptr;
  // The interpreter sets last_value before it calls the hook. A program that reports an exception itself goes on.
  PythonObject* const value = python().tuple_item(arguments, 1);
  if (value == nullptr) python().clear_error();
  const bool is_unhandled = value != nullptr && value == python().system_value("last_value");
  if (is_unhandled && getpid() == watched_process && python().system_value("ps1") == nullptr) {
    has_failed = true;
    flush("stdout");
    flush("stderr");
  }
  return result;
}

}  // namespace

void watch_exceptions_of_python() {
  if (hook_before != nullptr || !python().runs()) return;
  static PythonMethod method = {
      .name = "excepthook",
      .function = &on_exception,
      .flags = kTakesArguments,
      .documentation = "Notes for MPI_Finalize that the program ends by an exception."};
  watched_process = getpid();
  const ProgramRuns program;  // a thread may hold the interpreter and wait for MPI's lock
  const int state = python().begin_use();
  hook_before = python().system_value("excepthook");
  if (hook_before != nullptr) {
    python().acquire(hook_before);
    if (PythonObject* const hook = python().make_function(&method, nullptr, nullptr)) {
      if (python().set_system_value("excepthook", hook) != 0) python().clear_error();
      python().release(hook);
    } else {
      python().clear_error();
    }
  }
  python().end_use(state);
}

bool has_python_failed() { return has_failed; }

bool is_on_thread_of_executor() {
  if (!python().runs() || syscall(SYS_gettid) == getpid()) return false;
  const ProgramRuns program;  // see above
  const int state = python().begin_use();
  PythonObject* const modules = python().system_value("modules");
  const bool is_loaded = modules != nullptr && python().dictionary_item(modules, "mpi4py.futures") != nullptr;
  python().end_use(state);
  return is_loaded;
}

}  // namespace weft::mpi
