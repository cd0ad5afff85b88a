#include "chare/condition.h"

#include <cstring>
#include <utility>

#include "chare/call_arguments.h"
#include "engine/ending.h"
#include "engine/engine.h"

namespace weft::python {

namespace {

constexpr const char* kConditionMark = "__weft_when__";  // set by weft.when
constexpr int kMostNested = 4;                           // tuples

Ref function_or_null(PyObject* object) { return object == Py_None ? Ref() : Ref::borrow(object); }

bool is_of_numpy(const PyObject* value) { return std::strncmp(Py_TYPE(value)->tp_name, "numpy.", 6) == 0; }

// Whether nothing can change the value, and equal values have equal hashes: numbers, strings and tuples of them. Enumerations of int
// and NumPy's scalars are such numbers too.
bool is_plain(PyObject* value, int nesting = 0) {
  if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
      PyUnicode_CheckExact(value) || PyBytes_CheckExact(value)) {
    return true;
  }
  if (PyTuple_CheckExact(value)) {
    if (nesting == kMostNested) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      if (!is_plain(PyTuple_GET_ITEM(value, i), nesting + 1)) return false;
    }
    return true;
  }
  const PyTypeObject* const type = Py_TYPE(value);
  if (PyLong_Check(value))
    return type->tp_richcompare == PyLong_Type.tp_richcompare && type->tp_hash == PyLong_Type.tp_hash;
  if (!is_of_numpy(value)) return false;
  return PyFloat_Check(value) || (PyIndex_Check(value) && std::strcmp(type->tp_name, "numpy.ndarray") != 0);
}

// REQUIRES: both are plain. Whether a condition cannot tell them apart.
bool is_same(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (!PyTuple_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    if (!is_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  }
  return true;
}

// What has been raised is not the condition's: that is called as always, and says what is wrong.
void drop_error() {
  if (PyErr_Occurred() != nullptr && !ended_by_exception(Engine::current())) PyErr_Clear();
}

std::optional<std::uint64_t> hash_of(const Ref& value) {
  if (value && is_plain(value.get())) {
    const Py_hash_t hash = PyObject_Hash(value.get());
    if (hash != -1) return static_cast<std::uint64_t>(hash);
  }
  drop_error();
  return std::nullopt;
}

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
  PyObject* chare_key = nullptr;
  PyObject* call_key = nullptr;
  PyObject* reads = nullptr;
  if (PyArg_ParseTuple(mark.get(), "OO!OOO", &function, &PyTuple_Type, &parameters, &chare_key, &call_key,
                       &reads) == 0) {
    throw PythonError();
  }
  made->function_ = Ref::borrow(function);
  made->chare_key_ = function_or_null(chare_key);
  made->call_key_ = function_or_null(call_key);
  made->reads_ = function_or_null(reads);
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

Ref Condition::call(PyObject* function, CallArguments& arguments) const {
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
    if (value == nullptr) return {};
    values.push_back(value);
  }
  PyObject* const names = parameters_.empty() ? nullptr : names_.get();
  return Ref::steal(PyObject_Vectorcall(function, values.data(), 1, names));
}

bool Condition::holds(CallArguments& arguments) const {
  const Ref result = call(function_.get(), arguments);
  end_if_forked();
  if (!result && PyErr_Occurred() == nullptr) return true;
  if (!result) throw PythonError();
  const int truth = PyObject_IsTrue(result.get());
  checked(truth);
  return truth == 1;
}

std::optional<std::uint64_t> Condition::key_of_call(CallArguments& arguments) const {
  if (!call_key_) return std::nullopt;
  return hash_of(call(call_key_.get(), arguments));
}

std::optional<std::uint64_t> Condition::key_of_chare(PyObject* object) const {
  if (!chare_key_) return std::nullopt;
  return hash_of(Ref::steal(PyObject_CallOneArg(chare_key_.get(), object)));
}

bool Condition::has_changed(PyObject* object, Ref& seen) const {
  if (!reads_) return true;
  Ref now = Ref::steal(PyObject_CallOneArg(reads_.get(), object));
  if (!now || !is_plain(now.get())) {
    drop_error();
    seen = Ref();
    return true;
  }
  const bool is_as_before = seen && is_same(seen.get(), now.get());
  drop_error();
  seen = std::move(now);
  return !is_as_before;
}

}  // namespace weft::python
