// Calls of Python methods that wait in their chare until a condition holds, see weft/chare/waiting_call.h.
#pragma once

#include <cstddef>
#include <memory>

#include "chare/classes/call_arguments.h"
#include "chare/classes/chare.h"
#include "chare/classes/condition.h"

namespace weft::python {

// Runs the method if its condition holds now; else the call waits. What the condition raises goes to the caller. Returns whether the method
// has begun.
bool run_or_wait(PyChare& chare, const Condition& condition, std::unique_ptr<CallArguments> arguments,
                 const chare::ReplyTo& reply, std::size_t method);

}  // namespace weft::python
