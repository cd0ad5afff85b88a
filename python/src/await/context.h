// Contexts of Python's contextvars. Each coroutine and each callback runs in one of its own.
#pragma once

#include <utility>

#include "support/support.h"

namespace weft::python {

// A copy of the context that is current on this thread. Null without memory for one: user code then runs in the current one.
inline Ref copy_of_context() {
#ifdef Py_LIMITED_API
  if (PyContext_CopyCurrent == nullptr || PyContext_Enter == nullptr || PyContext_Exit == nullptr) return {};
#endif
  PyObject* const context = PyContext_CopyCurrent();
  if (context == nullptr) [[unlikely]]
    PyErr_Clear();
  return Ref::steal(context);
}

// While it lives, the context is current on this thread. It must live as long as this object.
class InContext {
 public:
  // REQUIRES: on the PE's thread, and no error is set. `context` may be null, or be entered already.
  explicit InContext(PyObject* context) : context_(context) {
    if (context_ == nullptr) [[unlikely]]
      return;
    if (PyContext_Enter(context_) != 0) [[unlikely]] {
      PyErr_Clear();
      context_ = nullptr;
      return;
    }
    outer_ = std::exchange(innermost_, context_);
  }
  ~InContext() {
    if (context_ == nullptr) [[unlikely]]
      return;
    innermost_ = outer_;
    if (PyContext_Exit(context_) != 0) [[unlikely]]
      PyErr_WriteUnraisable(context_);
  }
  // The context that the innermost one has entered; null for none.
  static Ref innermost() { return innermost_ == nullptr ? Ref() : Ref::borrow(innermost_); }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  PyObject* context_;
  PyObject* outer_ = nullptr;
  static inline PyObject* innermost_ = nullptr;
};

}  // namespace weft::python
