// How constructors and entry methods of Python classes run: from packed arguments to the outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/chare/entry.h"

#include "chare/classes/call_header.h"
#include "chare/classes/classes.h"
#include "support/support.h"

namespace weft::python {

const chare::ConstructorInfo& python_constructor();
const chare::EntryInfo& python_entry();
// What python_constructor() takes. Throws PythonError or base::Error if an argument cannot travel.
std::vector<std::byte> pack_constructor(const ClassInfo& info, PyObject* arguments);

}  // namespace weft::python
