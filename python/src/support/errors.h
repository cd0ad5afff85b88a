// weft.Error and weft.RemoteError, and the way of an exception between the two languages.
#pragma once

#include <exception>
#include <string>

#include "weft/base/error.h"

#include "support/support.h"

namespace weft::python {

void init_errors(PyObject* module);

// Sets Python's error indicator to weft.Error, or weft.RemoteError with the remote traceback.
void set_python_error(const std::exception_ptr& error) noexcept;

// A Python exception as the RemoteError that travels: its type's name, its text, and its formatted traceback.
std::exception_ptr as_travelling_error(PyObject* exception);
// The same for what a catch block caught, PythonError included.
std::exception_ptr caught_as_travelling_error();

// In place of Python's current exception, throws base::Error: "`what` cannot be sent: ...; ...".
[[noreturn]] void rethrow_unsendable(const std::string& what);

}  // namespace weft::python
