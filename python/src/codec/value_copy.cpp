#include "codec/value_copy.h"

#include <cstddef>
#include <span>
#include <vector>

#include "codec/decoder.h"
#include "codec/encoder.h"

namespace weft::python {

namespace {

bool is_plain_constant(PyObject* value) {
  return value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
         PyUnicode_CheckExact(value) || PyBytes_CheckExact(value);
}

}  // namespace

Ref copy_of_value(PyObject* value) {
  if (is_plain_constant(value)) return Ref::borrow(value);
  Encoder encoder(Beside::kHere);
  encoder.value(value);
  const std::vector<std::byte> bytes = encoder.copy();
  Decoder decoder{std::span<const std::byte>(bytes)};
  decoder.set_kept(encoder.kept());
  return decoder.value();
}

}  // namespace weft::python
