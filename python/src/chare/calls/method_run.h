// One run of an entry method of Python: an ordinary one to its end, a coroutine to its first await and later to its end.
// The result or the exception goes to the caller.
#pragma once

#include <cstddef>

#include "chare/classes/call_arguments.h"
#include "chare/classes/chare.h"

namespace weft::python {

void run_method(PyChare& chare, CallArguments& arguments, const chare::ReplyTo& reply, std::size_t method);
// Sends the current exception to the caller. `part` of the method has raised it. REQUIRES: called in a catch block.
void send_error_from(PyChare& chare, const chare::ReplyTo& reply, std::size_t method, const char* part = "");

}  // namespace weft::python
