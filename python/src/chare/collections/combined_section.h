// weft.CombinedSection and weft.combine: chares of several collections, as Python sees them.
#pragma once

#include <memory>

#include "chare/calls/combined_calls.h"
#include "support/support.h"

namespace weft::python {

// REQUIRES: init_section() was called.
void init_combined_section(PyObject* module);

bool is_combined_section(PyObject* object);
// REQUIRES: is_combined_section(section).
const std::shared_ptr<const CombinedProxy>& combined_section(PyObject* section);

}  // namespace weft::python
