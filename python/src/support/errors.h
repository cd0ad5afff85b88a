// weft.Error and weft.RemoteError, and the translation of exceptions between C++ and Python.
#pragma once

#include <exception>
#include <string>

#include "weft/base/error.h"

#include "support/support.h"

namespace weft::python {

void init_errors(PyObject* module);

// Sets Python's error indicator to weft.Error, or to weft.RemoteError with the remote traceback.
void set_python_error(const std::exception_ptr& error) noexcept;
// In a catch block: sets Python's error indicator to the caught exception.
void set_python_error() noexcept;
// Sets it to an exception that is equal to `exception`, but an object of its own: several that await one future may each add notes to
// theirs and keep it with its traceback.
void set_to_another(PyObject* exception) noexcept;

// Runs the body of a slot that Python calls. C++ exceptions become Python exceptions.
template <class Function>
PyObject* guarded(Function&& function) noexcept {
  try {
    return function();
  } catch (const PythonError&) {  // it is set; each throw saved here saves thousands of instructions
    return nullptr;
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
  } catch (const PythonError&) {
    return -1;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// Turns a Python exception into the RemoteError that is sent to the caller: type name, text, formatted traceback, and the pickled
// exception if it pickles. For a weft.RemoteError, type and message of the original are kept, and the traceback of this hop is
// appended.
std::exception_ptr as_travelling_error(PyObject* exception);
// In a catch block: the same for the caught exception, which may be a PythonError.
std::exception_ptr caught_as_travelling_error();

// kClosed for a weft.Error with that code, kInternal for any other exception.
base::StatusCode code_of_exception(PyObject* exception);

// Replaces Python's current exception by base::Error: "`what` cannot be sent: ...; ...".
[[noreturn]] void rethrow_unsendable(const std::string& what);

}  // namespace weft::python
