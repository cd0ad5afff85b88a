// How a method can be called. A call with other arguments fails at the caller, before it is sent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/support.h"

namespace weft::python {

class Signature {
 public:
  // Of a method of a class. If it is no function of Python, such as a static method, nothing is known and each call passes.
  static Signature of(PyObject* type, PyObject* name);

  // Throws PythonError, the TypeError that Python raises for a wrong call. `keyword_names`: a tuple, null for none.
  void expect(Py_ssize_t num_positional, PyObject* keyword_names) const {
    if (keyword_names == nullptr && num_positional >= least_ && num_positional <= most_) [[likely]]
      return;
    if (!accepts_keywords(num_positional, keyword_names)) expect_like_python(num_positional, keyword_names);
  }

 private:
  // Whether the call is certainly right. Names that are not the same objects, and **kwargs, are left to Python.
  bool accepts_keywords(Py_ssize_t num_positional, PyObject* keyword_names) const;
  // Calls a function of the same parameters that does nothing.
  [[gnu::cold, gnu::noinline]] void expect_like_python(Py_ssize_t num_positional,
                                                       PyObject* keyword_names) const;

  // Positional arguments behind the chare.
  Py_ssize_t least_ = 0;
  Py_ssize_t most_ = PY_SSIZE_T_MAX;
  Ref function_;       // null if nothing is known
  mutable Ref empty_;  // made from it for the first call that may be wrong
  // The parameters behind the chare, 64 at most: those by position and then those by keyword only.
  std::size_t num_by_position_ = 0;
  Ref names_;  // a tuple of interned str, or None for a parameter without a name
  std::uint64_t needed_ = 0;
};

}  // namespace weft::python
