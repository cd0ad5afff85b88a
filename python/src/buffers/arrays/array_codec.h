// The encoding of NumPy arrays, and of scalars of number types.
//
// Threads: the PE's thread.
#pragma once

#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

// Registers the encodings of NumPy's types with the codec when NumPy is loaded, and the decodings at once.
void init_array_codec(PyObject* module);

// Attaches a plain array to the message in place, and keeps it read-only until it is sent. Throws base::Error if
// it is not contiguous. REQUIRES: is_plain_array(array).
void encode_array_in_place(Encoder& encoder, PyObject* array);

}  // namespace weft::python
