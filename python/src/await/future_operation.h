// An operation of the core whose end is a Future, as a weft.Operation.
//
// Threads: the PE's thread.
#pragma once

#include "weft/runtime/future.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// It is over with `over`, gives None, and fails with its Error. `keeper` stays until then.
Ref operation_of(Engine& engine, const runtime::Future<>& over, Ref keeper);

}  // namespace weft::python
