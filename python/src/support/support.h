// Tools for CPython's C API: owned references, Python errors as C++ exceptions, arguments, and heap types.
//
// Every function here needs the GIL. The PE's thread holds it except while it sleeps (engine/engine.h).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "support/stable_abi.h"

namespace weft::python {

// An owned reference, null for none.
class Ref {
 public:
  Ref() = default;
  static Ref steal(PyObject* object) { return Ref(object); }
  static Ref borrow(PyObject* object) { return Ref(Py_XNewRef(object)); }
  Ref(const Ref& other) : object_(Py_XNewRef(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

// Thrown while Python's error indicator is set. guarded() (errors.h) hands that error to Python;
// PythonError::take() fetches it.
struct PythonError : std::exception {
  // The exception itself; clears the indicator.
  static Ref take();
};

// A new reference that must not be null, and a call that must not fail.
inline Ref checked(PyObject* new_reference) {
  if (new_reference == nullptr) throw PythonError();
  return Ref::steal(new_reference);
}
inline void checked(int status) {
  if (status < 0) throw PythonError();
}

// REQUIRES: a str; throws PythonError for one with lone surrogates.
std::string_view text_of(PyObject* str);
// str(object), whatever it is; never fails. A lone surrogate is written as "\\udc80".
std::string readable(PyObject* object);
// "numpy.ndarray" or "list".
std::string type_name_of(PyObject* object);
// The same for the type itself.
std::string name_of_type(PyObject* type);
Ref make_text(std::string_view text);
Ref attribute(PyObject* object, const char* name);
Ref import_module(const char* name);
Ref import_from(const char* module, const char* name);

// A name of a module, imported at its first use and kept as long as the process lives; `static constinit`. An import gives the GIL
// away, so it must not run in the initialiser of a static variable: a thread that waits for that initialiser keeps the GIL.
class Imported {
 public:
  constexpr Imported(const char* module, const char* name) : module_(module), name_(name) {}
  // A borrowed reference. Throws PythonError.
  PyObject* get() {
    if (object_ == nullptr) [[unlikely]] {
      Ref object = import_from(module_, name_);
      if (object_ == nullptr) object_ = object.release();  // no other thread has imported it meanwhile
    }
    return object_;
  }

 private:
  const char* module_;
  const char* name_;
  PyObject* object_ = nullptr;
};

// Positional and keyword arguments of a METH_FASTCALL | METH_KEYWORDS function, by name; null where absent.
// Throws PythonError (TypeError) like a Python function would.
struct Arguments {
  Arguments() = default;
  Arguments(const char* function, std::initializer_list<const char*> names, std::size_t num_required,
            PyObject* const* values, Py_ssize_t num_positional, PyObject* keyword_names);
  PyObject* operator[](std::size_t which) const { return found[which]; }
  PyObject* found[8] = {};
};

// Makes a heap type and adds it to the module under the last part of its name.
PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, PyTypeObject* base = nullptr);
void add_functions(PyObject* module, PyMethodDef* functions);

// PyCFunction of any flags, for a PyMethodDef.
template <class Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// What a memoryview shows. The memory is valid while the view lives, the rest while this object does too.
class ViewedBuffer {
 public:
  explicit ViewedBuffer(PyObject* memoryview);
#ifdef Py_LIMITED_API
  ~ViewedBuffer();
#else
  ~ViewedBuffer() = default;
#endif
  const Py_buffer* operator->() const { return buffer_; }
  const Py_buffer* get() const { return buffer_; }
  ViewedBuffer(const ViewedBuffer&) = delete;
  ViewedBuffer& operator=(const ViewedBuffer&) = delete;

 private:
#ifdef Py_LIMITED_API
  Py_buffer own_ = {};
#endif
  const Py_buffer* buffer_;
};

// Slot functions of a type that needs nothing but its memory freed and its type released.
void free_object(PyObject* self);

}  // namespace weft::python
