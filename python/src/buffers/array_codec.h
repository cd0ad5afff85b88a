// NumPy arrays and scalars of number types on the wire.
#pragma once

#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

// Adds their forms to the codec, as soon as NumPy is loaded.
void init_array_codec(PyObject* module);

// Attaches a plain array to the message in place. Throws base::Error if it is not contiguous.
// REQUIRES: is_plain_array(array).
void encode_array_in_place(Encoder& encoder, PyObject* array);

}  // namespace weft::python
