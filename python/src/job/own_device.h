// The PE's own device: weft.device(), and making it current for other libraries (weft._job.devices).
//
// Threads: the PE's, except where a function says otherwise.
#pragma once

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

void init_own_device(PyObject* module);

// At the start of a job: makes the PE's own device current when a library is imported that allocates on the
// current one, or at once if it is imported already. Does nothing on a PE without CUDA.
void watch_device_libraries(Engine& engine);

}  // namespace weft::python
