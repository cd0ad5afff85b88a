#include "chare/classes/signature.h"

#include <vector>

namespace weft::python {

Signature Signature::of(PyObject* type, PyObject* name) {
  const Ref found = checked(
      PyObject_CallFunction(import_from("weft._chare.signatures", "function_of").get(), "OO", type, name));
  Signature made;
  if (found.get() == Py_None) return made;
  PyObject* function = nullptr;
  if (PyArg_ParseTuple(found.get(), "Onn", &function, &made.least_, &made.most_) == 0) throw PythonError();
  made.function_ = Ref::borrow(function);
  return made;
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
