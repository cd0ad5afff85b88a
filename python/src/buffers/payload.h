// Arrays that travel in place as arguments of entry methods: device memory, and what weft.nocopy names.
#pragma once

#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;

void init_payload(PyObject* module);

bool is_no_copy(PyObject* object);
// REQUIRES of both: is_no_copy(object).
Ref no_copy_array(PyObject* object);
void encode_no_copy(Encoder& encoder, PyObject* object);
// For what is_device_object() in object_buffer.h says yes to.
void encode_device_array(Encoder& encoder, PyObject* object);
Ref decode_device_array(Decoder& decoder);

}  // namespace weft::python
