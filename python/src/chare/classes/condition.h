// The condition of an entry method, which weft.when has attached to it (python/weft/_chare/when.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "support/support.h"

namespace weft::python {

class CallArguments;

class Condition {
 public:
  // The condition of a method of a class; null if the method has none.
  static std::unique_ptr<Condition> of(PyObject* method);

  // Calls it with those of the arguments that it names. If the call lacks one of them, returns true: the method itself
  // then says so. Throws PythonError if it raises.
  bool holds(CallArguments& arguments) const;

  // --- What is known of it without calling it (python/weft/_chare/conditions.py), see chare::WaitingCall. These never throw.
  struct OfCall {
    std::optional<std::uint64_t> key;
    bool is_plain = false;  // whether the arguments that the condition gets cannot change
  };
  const void* group_of_others() const { return &reads_; }  // those that are not plain
  OfCall known_of(CallArguments& arguments) const;
  std::optional<std::uint64_t> key_of_chare(PyObject* object) const;
  // Whether it may give another answer to calls with plain arguments. `seen`: null, or what it has read before; it becomes what it
  // reads now, null if that may change.
  bool has_changed(PyObject* object, Ref& seen) const;

 private:
  struct Parameter {
    Ref name;             // an interned str
    Py_ssize_t position;  // in the call; -1: it is given by name only
    Ref default_value;    // of the method's parameter; null for none
  };

  Condition() = default;
  // The chare, and those of the arguments that the condition names. Empty if the call lacks one of them.
  std::vector<PyObject*> values(CallArguments& arguments) const;

  Ref function_;
  Ref chare_key_;             // null, or gets the attribute of the chare that an argument must equal
  std::size_t call_key_ = 0;  // which of the parameters that is
  Ref reads_;  // null, or a tuple of functions that get all that the condition reads of the chare
  std::vector<Parameter> parameters_;  // behind the chare
  Ref names_;                          // of the parameters, a tuple
};

}  // namespace weft::python
