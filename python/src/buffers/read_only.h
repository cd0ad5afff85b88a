// NumPy arrays that are being sent in place are read-only meanwhile: a write raises instead of changing what arrives.
//
// Only the array object that was sent is read-only. A view of it that exists already, the array that it is a view of,
// and objects of other libraries can be written to as before. An array that is sent several times at once is writable
// again when the last of these sends is over. One that was read-only before stays so. Threads: any that holds the GIL.
#pragma once

#include "support/support.h"

namespace weft::python {

// An object that owns `keeper` and, where that is a NumPy array, keeps it read-only as long as it lives.
Ref keep_read_only(Ref keeper);

}  // namespace weft::python
