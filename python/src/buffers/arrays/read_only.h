// Makes a NumPy array read-only while it is sent in place: a write then raises instead of changing the data that
// arrives.
//
// Only the array object that was sent is read-only. Its existing views, its base, and objects of other libraries stay
// writable. If an array is sent several times at once, it is writable again when the last of these sends is over. An
// array that was read-only before stays read-only.
//
// Threads: any thread that holds the GIL.
#pragma once

#include "support/support.h"

namespace weft::python {

// Returns an object that owns `keeper`. If `keeper` is a NumPy array, it is read-only as long as the object lives.
Ref keep_read_only(Ref keeper);

}  // namespace weft::python
