// One send, receive or copy under way as Python sees it: awaitable, with then(callback), and safe to drop.
#pragma once

#include "weft/runtime/operation.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

void init_operation(PyObject* module);

// Takes the handle's share of `state`. `keeper` owns the operation's buffers and stays until it is over
// (null: the data was copied). Awaiting it gives `result`, or what `convert` makes of the completed state and of `result`,
// once. `convert` may throw.
using ConvertResult = Ref (*)(runtime::OperationState* state, const Ref& result);
Ref make_operation_object(Engine& engine, runtime::OperationState* state, Ref keeper, Ref result,
                          ConvertResult convert = nullptr);
// One that is over and has succeeded. For None it is always the same object.
Ref make_finished_operation(Ref result);
Ref finished_operation();

}  // namespace weft::python
