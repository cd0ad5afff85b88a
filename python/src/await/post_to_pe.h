// What other threads than the PE's hand to it. They hold the GIL, so that the PE's thread is in user code or has given the GIL away while
// it rests: they may read, and make objects. Everything else is posted to the PE's thread.
#pragma once

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// Calls `function` with the tuple `arguments` (null: without) on the PE's thread, soon and in a copy of the caller's context. An
// exception ends the job, naming `where`.
void post_to_pe(Engine& engine, Ref function, Ref arguments, const char* where);
// The same for a method of `self` with one argument.
void post_method_to_pe(Engine& engine, PyObject* self, const char* method, PyObject* argument,
                       const char* where);

}  // namespace weft::python
