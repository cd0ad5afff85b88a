#include "chare/classes/condition.h"

#include <algorithm>
#include <utility>

#include "chare/classes/call_arguments.h"
#include "engine/ending.h"
#include "engine/engine.h"

namespace weft::python {

namespace {

constexpr const char* kConditionMark = "__weft_when__";  // set by weft.when
constexpr int kMostNested = 4;                           // tuples

// Whether nothing can change the value, and what is equal to it has the same hash: None, Python's own numbers and strings, and tuples of
// them. NumPy's scalars are not: an integer of 64 bits equals a float that it rounds to. Subclasses may have operators of their own.
bool is_plain(PyObject* value, int nesting = 0) {
  if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
      PyUnicode_CheckExact(value) || PyBytes_CheckExact(value)) {
    return true;
  }
  if (!PyTuple_CheckExact(value) || nesting == kMostNested) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
    if (!is_plain(PyTuple_GET_ITEM(value, i), nesting + 1)) return false;
  }
  return true;
}

// Whether both are tuples of the same objects.
bool has_same_objects(PyObject* a, PyObject* b) {
  if (a == nullptr || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    if (PyTuple_GET_ITEM(a, i) != PyTuple_GET_ITEM(b, i)) return false;
  }
  return true;
}

// Drops the error of a shortcut, such as a hash. The condition itself is called as always, and raises its own errors.
void drop_error() {
  if (PyErr_Occurred() != nullptr && !ended_by_exception(Engine::current())) PyErr_Clear();
}

std::optional<std::uint64_t> hash_of(PyObject* value) {
  if (value == nullptr || !is_plain(value)) return std::nullopt;
  const Py_hash_t hash = PyObject_Hash(value);
  if (hash != -1) return static_cast<std::uint64_t>(hash);
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
  if (reads != Py_None) made->reads_ = Ref::borrow(reads);
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
    if (call_key != Py_None && PyUnicode_Compare(name, call_key) == 0) {
      made->chare_key_ = Ref::borrow(chare_key);
      made->call_key_ = static_cast<std::size_t>(i);
    }
    PyObject* interned = Py_NewRef(name);
    PyUnicode_InternInPlace(&interned);
    PyTuple_SET_ITEM(made->names_.get(), i, Py_NewRef(interned));
    made->parameters_.push_back(
        {Ref::steal(interned), position, has_default != 0 ? Ref::borrow(default_value) : Ref()});
  }
  return made;
}

std::vector<PyObject*> Condition::values(CallArguments& arguments) const {
  const auto positional = arguments.positional();
  std::vector<PyObject*> values{positional[0]};
  values.reserve(1 + parameters_.size());
  for (const Parameter& parameter : parameters_) {
    PyObject* value = nullptr;
    if (parameter.position >= 0 && parameter.position < static_cast<Py_ssize_t>(positional.size())) {
      value = positional[static_cast<std::size_t>(parameter.position)];
    } else {
      value = arguments.keyword(parameter.name.get());
    }
    if (value == nullptr) value = parameter.default_value.get();
    if (value == nullptr) return {};
    values.push_back(value);
  }
  return values;
}

bool Condition::holds(CallArguments& arguments) const {
  const std::vector<PyObject*> all = values(arguments);
  if (all.empty()) return true;
  PyObject* const names = parameters_.empty() ? nullptr : names_.get();
  const Ref result = Ref::steal(PyObject_Vectorcall(function_.get(), all.data(), 1, names));
  end_if_forked();
  if (!result) throw PythonError();
  const int truth = PyObject_IsTrue(result.get());
  checked(truth);
  return truth == 1;
}

Condition::OfCall Condition::known_of(CallArguments& arguments) const {
  if (!chare_key_ && !reads_) return {};
  const std::vector<PyObject*> all = values(arguments);
  if (all.empty()) return {};
  OfCall known;
  known.is_plain = std::all_of(all.begin() + 1, all.end(), [](PyObject* value) { return is_plain(value); });
  if (chare_key_) known.key = hash_of(all[1 + call_key_]);
  return known;
}

std::optional<std::uint64_t> Condition::key_of_chare(PyObject* object) const {
  if (!chare_key_) return std::nullopt;
  const Ref value = Ref::steal(PyObject_CallOneArg(chare_key_.get(), object));
  if (!value) drop_error();
  return hash_of(value.get());
}

bool Condition::has_changed(PyObject* object, Ref& seen) const {
  if (!reads_) return true;
  const Ref before = std::exchange(seen, Ref());
  const Py_ssize_t count = PyTuple_GET_SIZE(reads_.get());
  Ref now = Ref::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; now && i < count; ++i) {
    Ref value = Ref::steal(PyObject_CallOneArg(PyTuple_GET_ITEM(reads_.get(), i), object));
    if (!value) {
      now = Ref();
    } else if (!is_plain(value.get())) {
      return true;
    } else {
      PyTuple_SET_ITEM(now.get(), i, value.release());
    }
  }
  if (!now) {
    drop_error();
    return true;
  }
  seen = std::move(now);
  return !has_same_objects(before.get(), seen.get());
}

}  // namespace weft::python
