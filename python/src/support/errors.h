// weft.Error and weft.RemoteError, and the translation of exceptions between C++ and Python.
#pragma once

#include <exception>
#include <string>

#include "weft/base/error.h"

#include "support/support.h"

namespace weft::python {

void init_errors(PyObject* module);

// Sets Python's error indicator to weft.Error, or weft.RemoteError with the remote traceback.
void set_python_error(const std::exception_ptr& error) noexcept;
// In a catch block: sets Python's error indicator to what was caught.
void set_python_error() noexcept;

// The body of a slot that Python calls: C++ exceptions become Python's.
template <class Function>
PyObject* guarded(Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
template <class Function>
int guarded_status(Function&& function) noexcept {
  try {
    function();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// A Python exception as the RemoteError that travels: its type's name, its text, and its formatted traceback.
// A weft.RemoteError keeps type and message of the exception that it reports; the traceback of this hop follows.
std::exception_ptr as_travelling_error(PyObject* exception);
// The same for what a catch block caught, PythonError included.
std::exception_ptr caught_as_travelling_error();

// In place of Python's current exception, throws base::Error: "`what` cannot be sent: ...; ...".
[[noreturn]] void rethrow_unsendable(const std::string& what);

}  // namespace weft::python
