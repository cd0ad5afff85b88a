// weft.QueuedChannel.
#pragma once

#include "support/support.h"

namespace weft::python {

void init_queued_channel(PyObject* module);

}  // namespace weft::python
