// Large `bytes`, and memoryviews, on the wire.
//
// `bytes` of kBesideBytes and more are sent in place where a message can carry attachments: they cannot change. A
// memoryview is a value like an array: it is copied, and arrives as a writable memoryview, of the same format and
// shape, over memory of its own.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_byte_values(PyObject* module);

}  // namespace weft::python
