#include "support/importable.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// What begins the module in the key of a definition.
constexpr std::string_view kByValue = "<by value>";

// Of this job, an object of weft._session.definitions; null where nothing travels by value.
PyObject* definitions = nullptr;

// Takes the object, or None, and returns that of before.
PyObject* set_definitions(PyObject*, PyObject* made) {
  PyObject* const before = std::exchange(definitions, made == Py_None ? nullptr : Py_NewRef(made));
  return before == nullptr ? Py_NewRef(Py_None) : before;
}

PyMethodDef functions[] = {
    {"_set_definitions", &set_definitions, METH_O, nullptr},
    {},
};

}  // namespace

void init_importable(PyObject* module) { add_functions(module, functions); }

std::string importable_key(PyObject* object, std::string_view what) {
  if (definitions != nullptr) {
    const Ref key = checked(PyObject_CallMethod(definitions, "key_of", "O", object));
    if (key.get() != Py_None) return std::string(text_of(key.get()));
  }
  if (PyObject_HasAttrString(object, "__module__") == 0 ||
      PyObject_HasAttrString(object, "__qualname__") == 0) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format(
            "{} {} is a {}, which has no name by which other PEs find it; give a function of a module", what,
            readable(object), type_name_of(object)));
  }
  std::string module = readable(attribute(object, "__module__").get());
  std::string qualified = readable(attribute(object, "__qualname__").get());
  std::string key = module + ":" + qualified;
  if (qualified.find("<locals>") != std::string::npos || qualified.find("<lambda>") != std::string::npos) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format(
            "{} {} is defined inside a function, where other PEs cannot find it; define it at the top level "
            "of its module",
            what, qualified));
  }
  bool same = false;
  try {
    same = import_key(key).get() == object;
  } catch (const base::Error&) {
    same = false;
  }
  if (!same) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format(
            "{} {} cannot be found as {} in module {}, which is how other PEs look for it; give it that name "
            "at the top level of the module",
            what, qualified, qualified, module));
  }
  return key;
}

PyObject* definitions_by_value() { return definitions; }

std::string_view name_in_key(std::string_view key) {
  const std::size_t colon = key.find(':');
  return colon == std::string_view::npos ? std::string_view() : key.substr(colon + 1);
}

namespace {

// Null with Python's error set if there is none.
Ref find_by_name(std::string_view key) {
  const Ref module = make_text(key.substr(0, key.find(':')));
  std::string_view path = name_in_key(key);
  // Far cheaper than an import of a module that is there.
  Ref found = Ref::steal(PyImport_GetModule(module.get()));
  if (!found || found.get() == Py_None) {  // None: an import of that name is to fail
    PyErr_Clear();
    found = Ref::steal(PyImport_Import(module.get()));
  }
  while (found && !path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string part(path.substr(0, dot));
    found = Ref::steal(PyObject_GetAttrString(found.get(), part.c_str()));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return found;
}

}  // namespace

Ref import_key(std::string_view key) {
  const bool is_by_value = definitions != nullptr && key.starts_with(kByValue);
  Ref found = is_by_value ? Ref::steal(PyObject_CallMethod(definitions, "find", "O", make_text(key).get()))
                          : find_by_name(key);
  if (!found) {
    Ref error = PythonError::take();
    throw base::Error(
        base::StatusCode::kNotFound,
        base::format(
            "{} is not on this PE ({}: {}); {}", key, type_name_of(error.get()), readable(error.get()),
            definitions == nullptr
                ? "every PE runs the script up to weft.run(main), so define it there or in a module "
                  "that can be imported"
                : "this PE has been started by PE 0 and has not run its program: it imports modules with "
                  "the sys.path that PE 0 had then"));
  }
  return found;
}

}  // namespace weft::python
