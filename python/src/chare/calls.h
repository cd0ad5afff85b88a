// How constructors and entry methods of Python classes run: from packed arguments to the outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/chare/entry.h"

#include "chare/classes.h"
#include "support/support.h"

namespace weft::python {

// The first bytes of an entry method's packed arguments.
struct CallHeader {
  enum class Form : std::uint8_t {
    kArguments,  // counts of positional and keyword arguments (a byte each), the values, the keywords' names
    // A count (a byte) of bound arguments, their values; then a reduction's result in the form that `result_form` says, as
    // the last argument. kNothing is no argument.
    kResult,
  };
  std::uint16_t method = 0;
  Form form = Form::kArguments;
  std::uint8_t result_form = 0;
};

const chare::ConstructorInfo& python_constructor();
const chare::EntryInfo& python_entry();
// What python_constructor() takes. Throws PythonError or base::Error if an argument cannot travel.
std::vector<std::byte> pack_constructor(const ClassInfo& info, PyObject* arguments);

}  // namespace weft::python
