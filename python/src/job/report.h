// Reports of the machine and memory layers: `weft info`, weft.transport_use() and weft.peer_transports().
#pragma once

#include "support/support.h"

namespace weft::python {

void init_report(PyObject* module);

}  // namespace weft::python
