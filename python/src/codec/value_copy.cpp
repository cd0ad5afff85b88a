#include "codec/value_copy.h"

#include <cstddef>
#include <span>
#include <vector>

#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"

namespace weft::python {

Ref copy_of_value(PyObject* value) {
  if (is_plain_constant(value)) return Ref::borrow(value);
  Encoder encoder(OutOfBand::kHere);
  encoder.value(value);
  const std::vector<std::byte> bytes = encoder.copy();
  Decoder decoder{std::span<const std::byte>(bytes)};
  decoder.set_kept(encoder.kept());
  return decoder.value();
}

}  // namespace weft::python
