// How constructors and entry methods of Python classes run: from encoded arguments to the outcome.
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
// The encoded arguments of python_constructor(). Throws PythonError or base::Error if an argument cannot travel.
std::vector<std::byte> encode_constructor(const ClassInfo& info, PyObject* arguments);

}  // namespace weft::python
