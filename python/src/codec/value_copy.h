// Copies of values within their PE: what a value would be if it had travelled to another PE and were decoded there.
#pragma once

#include "support/support.h"

namespace weft::python {

// The object itself if nothing can change it. Device memory, and what weft.nocopy wraps, is not copied. Throws PythonError or
// base::Error if the value cannot travel.
Ref copy_of_value(PyObject* value);

}  // namespace weft::python
