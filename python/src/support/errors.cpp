#include "support/errors.h"

#include <new>
#include <string>
#include <utility>

#include "base/format.h"

namespace weft::python {

namespace {

PyObject* error_type = nullptr;
PyObject* remote_error_type = nullptr;
PyObject* lost_pe_type = nullptr;

void set_attribute(PyObject* object, const char* name, std::string_view value) {
  checked(PyObject_SetAttrString(object, name, make_text(value).get()));
}

constexpr const char* kRemoteErrors = "weft._support.remote_errors";

void raise(const Ref& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

// The lost PE for which it is a weft.LostPE; -1 for other errors.
int lost_pe_of(const base::Error& error) {
  return error.code() == base::StatusCode::kPeerFailed ? base::lost_pe_in(error.what()) : -1;
}

void raise_error(PyObject* type, const base::Error& error) {
  Ref exception = checked(PyObject_CallOneArg(type, make_text(error.what()).get()));
  set_attribute(exception.get(), "code", base::status_code_name(error.code()));
  if (const auto* remote = dynamic_cast<const base::RemoteError*>(&error)) {
    set_attribute(exception.get(), "type_name", remote->type());
    set_attribute(exception.get(), "message", remote->remote_message());
    set_attribute(exception.get(), "traceback_text", remote->traceback());
  }
  if (const int pe = lost_pe_of(error); pe >= 0)
    checked(PyObject_SetAttrString(exception.get(), "pe", checked(PyLong_FromLong(pe)).get()));
  raise(exception);
}

// An exception from which another PE has sent the original, too, is of the original's type.
void raise_remote_error(const base::RemoteError& error) {
  if (error.original().empty()) return raise_error(remote_error_type, error);
  static constinit Imported function(kRemoteErrors, "made_again");
  const Ref original = checked(
      PyBytes_FromStringAndSize(error.original().data(), static_cast<Py_ssize_t>(error.original().size())));
  raise(checked(PyObject_CallFunctionObjArgs(function.get(), make_text(error.type()).get(),
                                             make_text(error.remote_message()).get(),
                                             make_text(error.traceback()).get(), original.get(), nullptr)));
}

void raise_internal_error(const char* what) noexcept {
  try {
    raise_error(error_type, base::Error(base::StatusCode::kInternal, what));
  } catch (const PythonError&) {
    return;  // the failure to raise it is set instead
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
}

}  // namespace

namespace {

// `rethrow` throws the exception that Python's error indicator is set to.
template <class Rethrow>
void translate(Rethrow&& rethrow) noexcept {
  try {
    rethrow();
  } catch (const PythonError&) {
    return;  // it is set already
  } catch (const base::RemoteError& error) {
    try {
      raise_remote_error(error);
    } catch (const PythonError&) {
      return;  // the failure to raise it is set instead
    }
  } catch (const base::Error& error) {
    try {
      raise_error(lost_pe_of(error) >= 0 ? lost_pe_type : error_type, error);
    } catch (const PythonError&) {
      return;  // the failure to raise it is set instead
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    raise_internal_error(error.what());
  } catch (...) {
    raise_internal_error("an unknown C++ exception");
  }
}

}  // namespace

void set_python_error(const std::exception_ptr& error) noexcept {
  translate([&error] { std::rethrow_exception(error); });
}

void set_python_error() noexcept {
  translate([] { throw; });
}

void set_to_another(PyObject* exception) noexcept {
  translate([exception] {
    static constinit Imported function(kRemoteErrors, "another");
    raise(checked(PyObject_CallOneArg(function.get(), exception)));
  });
}

namespace {

// The text attribute of a weft.RemoteError; empty where a program has made one without it.
std::string text_attribute(PyObject* exception, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(exception, name));
  if (!value) PyErr_Clear();
  return value && PyUnicode_Check(value.get()) != 0 ? readable(value.get()) : std::string();
}

}  // namespace

std::exception_ptr as_travelling_error(PyObject* exception) {
  try {
    static constinit Imported function(kRemoteErrors, "travelling");
    const Ref parts = checked(PyObject_CallOneArg(function.get(), exception));
    const auto part = [&parts](Py_ssize_t which) { return readable(PyTuple_GET_ITEM(parts.get(), which)); };
    PyObject* const bytes = PyTuple_GET_ITEM(parts.get(), 3);
    std::string original(PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)));
    // An exception from another chare keeps the type and message of the original over any number of hops.
    const std::string type = part(0);
    return std::make_exception_ptr(
        type.empty()
            ? base::RemoteError(type_name_of(exception), readable(exception), part(2), std::move(original))
            : base::RemoteError(type, part(1), part(2), std::move(original)));
  } catch (const PythonError&) {
    PyErr_Clear();
    return std::make_exception_ptr(base::RemoteError(type_name_of(exception), readable(exception),
                                                     "  (its traceback could not be formatted)\n"));
  }
}

std::exception_ptr caught_as_travelling_error() {
  try {
    throw;
  } catch (const PythonError&) {
    return as_travelling_error(PythonError::take().get());
  } catch (...) {
    return std::current_exception();
  }
}

base::StatusCode code_of_exception(PyObject* exception) {
  const bool is_closed =
      PyErr_GivenExceptionMatches(exception, error_type) != 0 &&
      text_attribute(exception, "code") == base::status_code_name(base::StatusCode::kClosed);
  return is_closed ? base::StatusCode::kClosed : base::StatusCode::kInternal;
}

namespace {

// Makes the exception type weft.`name`, whose instances have `code` unless they say otherwise. The caller owns it.
PyObject* add_type(PyObject* module, const char* name, const char* doc, PyObject* base,
                   base::StatusCode code) {
  Ref attributes = checked(PyDict_New());
  checked(PyDict_SetItemString(attributes.get(), "code", make_text(base::status_code_name(code)).get()));
  PyObject* const type =
      PyErr_NewExceptionWithDoc((std::string("weft.") + name).c_str(), doc, base, attributes.get());
  checked(PyModule_AddObjectRef(module, name, type));
  return type;
}

}  // namespace

void init_errors(PyObject* module) {
  // The code of errors that Python code of the package raises: they refuse arguments.
  error_type = add_type(
      module, "Error",
      "An error of Weft. Its text says what went wrong, where, and what to do about it.\n\n"
      "A function of weft raises it at once if it cannot start its work. If an operation fails later,\n"
      "awaiting it raises the error.\n\n"
      "Attributes:\n"
      "    code: the kind of failure in words: 'cancelled', 'truncated', 'invalid argument', 'out of "
      "range',\n"
      "        'not found', 'unreachable', 'peer failed', 'out of memory', 'unsupported', 'closed',\n"
      "        'timed out', 'corrupt data' or 'internal error'.",
      PyExc_Exception, base::StatusCode::kInvalidArgument);
  remote_error_type = add_type(
      module, "RemoteError",
      "An exception that an entry method raised. Awaiting the result of ``call`` raises it.\n\n"
      "It is of the original type too: ``except ValueError`` catches it if the entry method raised a\n"
      "ValueError. It has the original's ``args``, notes and those attributes that pickle; its "
      "``__cause__``\n"
      "shows the traceback on the other PE. An exception that cannot be pickled, or made again on this PE,\n"
      "and one of C++, is a plain weft.RemoteError, whose text is type, message and traceback.\n\n"
      "Attributes:\n"
      "    code: 'internal error'; that of the original if this is a weft.Error.\n"
      "    type_name: the name of the original exception's type.\n"
      "    message: the text of the original exception.\n"
      "    traceback_text: its traceback on the PE where it was raised, followed by chare, entry method and\n"
      "        PE of each call that it crossed.",
      error_type, base::StatusCode::kInternal);
  lost_pe_type = add_type(
      module, "LostPE",
      "The operation needs a PE that the job has lost: ``weft run --on-loss raise`` keeps the job then.\n\n"
      "Attributes:\n"
      "    code: 'peer failed'.\n"
      "    pe: the number of the lost PE.",
      error_type, base::StatusCode::kPeerFailed);
  checked(PyObject_SetAttrString(lost_pe_type, "pe", checked(PyLong_FromLong(-1)).get()));
}

namespace {

// Advice for a value that cannot be pickled. pickle names the value's type in its message.
std::string_view advice_for(std::string_view message) {
  for (std::string_view awaitable : {"'coroutine' object", "'weft.Operation' object"}) {
    if (message.find(awaitable) != std::string_view::npos) return "did you forget `await`?";
  }
  return "send plain data, arrays, or objects of importable classes that pickle";
}

}  // namespace

void rethrow_unsendable(const std::string& what) {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw PythonError();
  Ref error = PythonError::take();
  const std::string message = readable(error.get());
  // Weft's own errors say what to do.
  if (PyErr_GivenExceptionMatches(error.get(), error_type) != 0) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} cannot be sent: {}", what, message));
  }
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("{} cannot be sent: {}: {}; {}", what, type_name_of(error.get()), message,
                                 advice_for(message)));
}

}  // namespace weft::python
