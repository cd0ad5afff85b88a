// Classes and functions that every PE finds under the same name: "module:qualified name".
//
// In a job whose PEs were started by PE 0 (python/weft/_session/) the others have not run the program. There a class or function that
// they cannot import travels by value, and its module in the key is the name of its definition (_session/definitions.py).
#pragma once

#include <string>
#include <string_view>

#include "support/support.h"

namespace weft::python {

void init_importable(PyObject* module);

// The key of a class or function. Throws base::Error, whose message begins with `what`, if the key does not
// lead back to the object.
std::string importable_key(PyObject* object, std::string_view what);
// The object that pickles values, and gives the keys of classes and functions, if the other PEs have not run the program, so that some
// travel by value; else null. Borrowed.
PyObject* definitions_by_value();
// "Ring" of "app.rings:Ring".
std::string_view name_in_key(std::string_view key);
// The object of a key; imports its module. Throws base::Error if there is none.
Ref import_key(std::string_view key);

}  // namespace weft::python
