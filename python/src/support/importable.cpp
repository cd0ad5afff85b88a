#include "support/importable.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// What begins the module in the key of a definition.
constexpr std::string_view kByValue = "<by value>";

// key_of(object) gives the key, or None for an object that other PEs can import; find(key) gives the object. Null where nothing
// travels by value.
PyObject* definition_key_of = nullptr;
PyObject* find_definition = nullptr;

PyObject* set_definitions(PyObject*, PyObject* const* functions, Py_ssize_t count) {
  const bool is_set = count == 2;
  Py_XSETREF(definition_key_of, is_set ? Py_NewRef(functions[0]) : nullptr);
  Py_XSETREF(find_definition, is_set ? Py_NewRef(functions[1]) : nullptr);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_set_definitions", as_method(&set_definitions), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void init_importable(PyObject* module) { add_functions(module, functions); }

std::string importable_key(PyObject* object, std::string_view what) {
  if (definition_key_of != nullptr) {
    const Ref key = checked(PyObject_CallOneArg(definition_key_of, object));
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

bool definitions_travel() { return definition_key_of != nullptr; }

std::string_view name_in_key(std::string_view key) {
  const std::size_t colon = key.find(':');
  return colon == std::string_view::npos ? std::string_view() : key.substr(colon + 1);
}

namespace {

// Null with Python's error set if there is none.
Ref find_by_name(std::string_view key) {
  const std::string module(key.substr(0, key.find(':')));
  std::string_view path = name_in_key(key);
  Ref found = Ref::steal(PyImport_ImportModule(module.c_str()));
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
  const bool is_by_value = find_definition != nullptr && key.starts_with(kByValue);
  Ref found = is_by_value ? Ref::steal(PyObject_CallOneArg(find_definition, make_text(key).get()))
                          : find_by_name(key);
  if (!found) {
    Ref error = PythonError::take();
    throw base::Error(
        base::StatusCode::kNotFound,
        base::format(
            "{} is not on this PE ({}: {}); {}", key, type_name_of(error.get()), readable(error.get()),
            find_definition == nullptr
                ? "every PE runs the script up to weft.run(main), so define it there or in a module "
                  "that can be imported"
                : "this PE has been started by PE 0 and has not run its program: it imports modules with "
                  "the sys.path that PE 0 had then"));
  }
  return found;
}

}  // namespace weft::python
