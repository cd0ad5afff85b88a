// The encoding of large `bytes`, and of memoryviews.
//
// `bytes` of kOutOfBandBytes or more are sent in place if the message can carry attachments, because they cannot
// change. A memoryview is copied, like an array. It arrives as a writable memoryview of the same format and
// shape, over memory of its own.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_byte_values(PyObject* module);

}  // namespace weft::python
