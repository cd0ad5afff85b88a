// The condition of an entry method, which weft.when has attached to it (python/weft/_when.py).
#pragma once

#include <memory>
#include <vector>

#include "support/support.h"

namespace weft::python {

class CallArguments;

class Condition {
 public:
  // Of a method of a class; null if it has none.
  static std::unique_ptr<Condition> of(PyObject* method);

  // Calls it with those of the arguments that it names. If the call lacks one of them, returns true: the method itself
  // then says so. Throws PythonError if it raises.
  bool holds(CallArguments& arguments) const;

 private:
  struct Parameter {
    Ref name;             // an interned str
    Py_ssize_t position;  // in the call; -1: it is given by name only
    Ref default_value;    // of the method's parameter; null for none
  };

  Condition() = default;

  Ref function_;
  std::vector<Parameter> parameters_;  // behind the chare
  Ref names_;                          // of the parameters, a tuple
};

}  // namespace weft::python
