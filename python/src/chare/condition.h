// The condition of an entry method, which weft.when has attached to it (python/weft/_when.py).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

  // --- What is known of it without calling it (python/weft/_conditions.py), see chare::WaitingCall. These never throw.
  std::optional<std::uint64_t> key_of_call(CallArguments& arguments) const;
  std::optional<std::uint64_t> key_of_chare(PyObject* object) const;
  // `seen`: null, or what it has read before; it becomes what it reads now, null if that is not known.
  bool has_changed(PyObject* object, Ref& seen) const;

 private:
  struct Parameter {
    Ref name;             // an interned str
    Py_ssize_t position;  // in the call; -1: it is given by name only
    Ref default_value;    // of the method's parameter; null for none
  };

  Condition() = default;
  // Calls the function with those of the arguments that the condition names. Null without an error if the call lacks one of them.
  Ref call(PyObject* function, CallArguments& arguments) const;

  Ref function_;
  Ref chare_key_;  // this and the next two may be null
  Ref call_key_;
  Ref reads_;
  std::vector<Parameter> parameters_;  // behind the chare
  Ref names_;                          // of the parameters, a tuple
};

}  // namespace weft::python
