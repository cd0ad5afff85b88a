#include "chare/classes/signature.h"

#include <algorithm>
#include <vector>

namespace weft::python {

Signature Signature::of(PyObject* type, PyObject* name) {
  const Ref found = checked(
      PyObject_CallFunction(import_from("weft._chare.signatures", "function_of").get(), "OO", type, name));
  Signature made;
  if (found.get() == Py_None) return made;
  PyObject* function = nullptr;
  PyObject* names = nullptr;
  Py_ssize_t num_by_position = 0;
  unsigned long long needed = 0;
  if (PyArg_ParseTuple(found.get(), "OnnnO!K", &function, &made.least_, &made.most_, &num_by_position,
                       &PyTuple_Type, &names, &needed) == 0) {
    throw PythonError();
  }
  made.function_ = Ref::borrow(function);
  made.num_by_position_ = static_cast<std::size_t>(num_by_position);
  made.names_ = Ref::borrow(names);
  made.needed_ = needed;
  return made;
}

bool Signature::accepts_keywords(Py_ssize_t num_positional, PyObject* keyword_names) const {
  if (!function_ || keyword_names == nullptr || num_positional > most_) return false;
  if (PyTuple_GET_SIZE(keyword_names) == 0) return false;
  const auto num_names = static_cast<std::size_t>(PyTuple_GET_SIZE(names_.get()));
  const std::size_t filled = std::min(static_cast<std::size_t>(num_positional), num_by_position_);
  std::uint64_t missing = filled < 64 ? needed_ >> filled << filled : 0;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keyword_names); ++k) {
    PyObject* const name = PyTuple_GET_ITEM(keyword_names, k);
    std::size_t i = filled;
    while (i < num_names && PyTuple_GET_ITEM(names_.get(), static_cast<Py_ssize_t>(i)) != name) ++i;
    if (i == num_names) return false;
    missing &= ~(std::uint64_t{1} << i);
  }
  return missing == 0;
}

void Signature::expect_like_python(Py_ssize_t num_positional, PyObject* keyword_names) const {
  if (!function_) return;
  if (!empty_) {
    empty_ = checked(
        PyObject_CallOneArg(import_from("weft._chare.signatures", "without_body").get(), function_.get()));
  }
  const Py_ssize_t num_keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  const Py_ssize_t with_chare = num_positional + 1;
  const std::vector<PyObject*> values(static_cast<std::size_t>(with_chare + num_keywords), Py_None);
  checked(
      PyObject_Vectorcall(empty_.get(), values.data(), static_cast<std::size_t>(with_chare), keyword_names));
}

}  // namespace weft::python
