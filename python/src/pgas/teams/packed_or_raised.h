// The packed value of this rank in a collective of a team, or the exception of its packing. Threads: the PE's.
#pragma once

#include <exception>

#include "weft/pgas/team.h"

#include "support/errors.h"
#include "support/support.h"

namespace weft::python {

// The value that a function packs, or the exception that it raises. The collective is started with either, so that the other ranks do not wait; then
// this rank raises the exception.
class PackedOrRaised {
 public:
  template <class Pack>
  explicit PackedOrRaised(const Pack& pack) {
    try {
      packed_.bytes.assign(pack());
    } catch (const PythonError&) {
      raised_ = PythonError::take();
      packed_.error = as_travelling_error(raised_.get());
    } catch (...) {
      packed_.error = std::current_exception();
    }
  }
  const pgas::PackedValue& packed() const { return packed_; }
  void rethrow() const {
    if (raised_) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised_.get())), raised_.get());
      throw PythonError();
    }
    if (packed_.error) std::rethrow_exception(packed_.error);
  }

 private:
  pgas::PackedValue packed_;
  Ref raised_;
};

}  // namespace weft::python
