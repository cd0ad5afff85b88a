// A coroutine of the core as a weft.Operation.
//
// Threads: the PE's thread.
#pragma once

#include <memory>

#include "weft/runtime/task.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// Starts `task`. The operation is over with it, gives None, and fails with its Error. `keeper` stays until then.
Ref start_task(Engine& engine, runtime::Task<> task, Ref keeper);

}  // namespace weft::python
