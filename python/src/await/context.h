// Contexts of Python's contextvars. Each coroutine and each callback runs in one of its own.
#pragma once

#include "support/support.h"

namespace weft::python {

// A copy of the context that is current on this thread. Null without memory for one: user code then runs in the current one.
inline Ref copy_of_context() {
  PyObject* const context = PyContext_CopyCurrent();
  if (context == nullptr) [[unlikely]]
    PyErr_Clear();
  return Ref::steal(context);
}

// While it lives, the context is current on this thread. It must live as long as this object.
class InContext {
 public:
  // REQUIRES: no error is set. `context` may be null.
  explicit InContext(PyObject* context) : context_(context) {
    if (context_ != nullptr && PyContext_Enter(context_) != 0) [[unlikely]] {
      PyErr_Clear();
      context_ = nullptr;
    }
  }
  ~InContext() {
    if (context_ != nullptr && PyContext_Exit(context_) != 0) [[unlikely]]
      PyErr_WriteUnraisable(context_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  PyObject* context_;
};

}  // namespace weft::python
