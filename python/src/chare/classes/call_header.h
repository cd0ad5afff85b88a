// The header in front of the encoded arguments of a call of a Python entry method.
#pragma once

#include <cstdint>

namespace weft::python {

struct CallHeader {
  enum class Form : std::uint8_t {
    kArguments,  // counts of positional and keyword arguments (a byte each), the arguments, the keywords' names
    // A count (a byte) of bound arguments, these arguments; then a reduction's result in the form that `result_form` says, as
    // the last argument. kNothing is no argument.
    kResult,
  };
  std::uint16_t method = 0;
  Form form = Form::kArguments;
  std::uint8_t result_form = 0;
};

}  // namespace weft::python
