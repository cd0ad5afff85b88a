// A load-balancing strategy that is a Python function. weft/load_balancing.py makes the snapshot that the function gets, and
// the registry of functions.
//
// Threads: that of the PE, or of `weft lb`, with the GIL.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "balance/strategy.h"
#include "support/support.h"

namespace weft::python {

class PythonStrategy final : public balance::Strategy {
 public:
  PythonStrategy(std::string name, Ref function) : name_(std::move(name)), function_(std::move(function)) {}

  std::string_view name() const override { return name_; }
  // Throws RemoteError for an exception of the function, and for a result that is no list of integers. The caller checks the
  // placement, as that of any strategy.
  balance::Placement place(const balance::Snapshot& snapshot) override;

 private:
  std::string name_;
  Ref function_;
};

// Adds _register_strategy(name, communication).
void init_python_strategy(PyObject* module);

}  // namespace weft::python
