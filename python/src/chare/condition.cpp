#include "chare/condition.h"

#include "chare/call_arguments.h"
#include "engine/ending.h"

namespace weft::python {

namespace {

constexpr const char* kConditionMark = "__weft_when__";  // set by weft.when

}  // namespace

std::unique_ptr<Condition> Condition::of(PyObject* method) {
  const Ref mark = Ref::steal(PyObject_GetAttrString(method, kConditionMark));
  if (!mark) {
    PyErr_Clear();
    return nullptr;
  }
  std::unique_ptr<Condition> made(new Condition);
  PyObject* function = nullptr;
  PyObject* parameters = nullptr;
  if (PyArg_ParseTuple(mark.get(), "OO!", &function, &PyTuple_Type, &parameters) == 0) throw PythonError();
  made->function_ = Ref::borrow(function);
  const Py_ssize_t count = PyTuple_GET_SIZE(parameters);
  made->names_ = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = nullptr;
    Py_ssize_t position = -1;
    int has_default = 0;
    PyObject* default_value = nullptr;
    if (PyArg_ParseTuple(PyTuple_GET_ITEM(parameters, i), "UnpO", &name, &position, &has_default,
                         &default_value) == 0) {
      throw PythonError();
    }
    PyObject* interned = Py_NewRef(name);
    PyUnicode_InternInPlace(&interned);
    PyTuple_SET_ITEM(made->names_.get(), i, Py_NewRef(interned));
    made->parameters_.push_back(
        {Ref::steal(interned), position, has_default != 0 ? Ref::borrow(default_value) : Ref()});
  }
  return made;
}

bool Condition::holds(CallArguments& arguments) const {
  const auto positional = arguments.positional();
  std::vector<PyObject*> values{positional[0]};
  values.reserve(1 + parameters_.size());
  for (const Parameter& parameter : parameters_) {
    PyObject* value = nullptr;
    if (parameter.position >= 0 && static_cast<std::size_t>(parameter.position) < positional.size()) {
      value = positional[static_cast<std::size_t>(parameter.position)];
    } else {
      value = arguments.keyword(parameter.name.get());
    }
    if (value == nullptr) value = parameter.default_value.get();
    if (value == nullptr) return true;
    values.push_back(value);
  }
  PyObject* const names = parameters_.empty() ? nullptr : names_.get();
  const Ref result = Ref::steal(PyObject_Vectorcall(function_.get(), values.data(), 1, names));
  end_if_forked();
  if (!result) throw PythonError();
  const int truth = PyObject_IsTrue(result.get());
  checked(truth);
  return truth == 1;
}

}  // namespace weft::python
