// Calls on other threads than the PE's. The calling thread encodes the arguments, which it may therefore change at once, and makes the
// message; it holds the GIL, see await/coroutine.h. The PE's thread sends the message.
#pragma once

#include <functional>
#include <span>

#include "weft/chare/outcome.h"
#include "weft/runtime/message.h"
#include "weft/runtime/operation.h"

#include "await/future.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// For the future of a call.
inline constexpr const char* kUnawaitedCall = "a call whose result was not awaited";

// method(...) and method.send(...): a weft.Operation that is over when the message is sent, all arguments may be changed, and the PE that
// is called has room for further calls.
PyObject* send_from_other_thread(PyObject* method, PyObject* const* arguments, Py_ssize_t count,
                                 PyObject* keyword_names);
// method.call(...): a weft.Future.
PyObject* call_from_other_thread(PyObject* method, PyObject* const* arguments, Py_ssize_t count,
                                 PyObject* keyword_names);

// --- Of method_calls.cpp

// None, one, or one for each part of a combined section.
using Replies = std::span<const chare::ReplyTo>;

// A call on its way to the runtime.
struct Outgoing {
  runtime::MessagePtr message;
  // The state of the sending of what travels in place; null for nothing.
  runtime::OperationState* sending = nullptr;
};
struct Sent {
  runtime::OperationState* sending = nullptr;  // as in Outgoing
  int pe = -1;                                 // all
};

// `method`: a weft.EntryMethod. Throws PythonError or base::Error if an argument cannot travel. Any thread.
Outgoing encode_outgoing(PyObject* method, PyObject* const* arguments, Py_ssize_t num_positional,
                         PyObject* keyword_names);
Sent send_outgoing(PyObject* method, Outgoing call, Replies replies);
// Calls `send_call` with the replies that the future of `state` expects.
void send_for_result(PyObject* method, PyFutureState* state,
                     const std::function<runtime::OperationState*(Replies)>& send_call);
Engine& engine_of_method(PyObject* method);

}  // namespace weft::python
