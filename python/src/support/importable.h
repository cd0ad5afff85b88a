// Classes and functions that every PE finds under the same name: "module:qualified name".
#pragma once

#include <string>
#include <string_view>

#include "support/support.h"

namespace weft::python {

// The key of a class or function. Throws base::Error, whose message begins with `what`, if the key does not
// lead back to the object.
std::string importable_key(PyObject* object, std::string_view what);
// "Ring" of "app.rings:Ring".
std::string_view name_in_key(std::string_view key);
// The object of a key; imports its module. Throws base::Error if there is none.
Ref import_key(std::string_view key);

}  // namespace weft::python
