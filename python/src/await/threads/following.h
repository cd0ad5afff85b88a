// weft._core._follow: tells other threads that a future or an operation is ready, for weft.as_asyncio and weft.as_concurrent.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_following(PyObject* module);

}  // namespace weft::python
