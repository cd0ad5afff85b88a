#include "support/importable.h"

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::python {

std::string importable_key(PyObject* object, std::string_view what) {
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

std::string_view name_in_key(std::string_view key) {
  const std::size_t colon = key.find(':');
  return colon == std::string_view::npos ? std::string_view() : key.substr(colon + 1);
}

Ref import_key(std::string_view key) {
  std::string module(key.substr(0, key.find(':')));
  std::string_view path = name_in_key(key);
  PyObject* imported = PyImport_ImportModule(module.c_str());
  Ref found = Ref::steal(imported);
  while (found && !path.empty()) {
    std::size_t dot = path.find('.');
    std::string part(path.substr(0, dot));
    found = Ref::steal(PyObject_GetAttrString(found.get(), part.c_str()));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  if (!found) {
    Ref error = PythonError::take();
    throw base::Error(
        base::StatusCode::kNotFound,
        base::format("{} is not on this PE ({}: {}); every PE runs the script up to weft.run(main), so "
                     "define it there or in a module that can be imported",
                     key, type_name_of(error.get()), readable(error.get())));
  }
  return found;
}

}  // namespace weft::python
