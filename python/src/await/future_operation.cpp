#include "await/future_operation.h"

#include <utility>

#include "weft/runtime/task.h"

#include "await/operation.h"

namespace weft::python {

namespace {

runtime::Task<> follow(runtime::Future<> over, runtime::OperationState* state) {
  OperationEnding ending(state);
  base::Status status;
  try {
    co_await over;
  } catch (const base::Error& error) {
    status = base::Status(error.code(), error.what());
  }
  ending.end(std::move(status));
}

}  // namespace

Ref operation_of(Engine& engine, const runtime::Future<>& over, Ref keeper) {
  auto* const state = runtime::OperationState::create(engine.runtime());
  state->started(base::Status::pending(), 0);
  Ref operation = make_operation_object(engine, state, std::move(keeper), Ref::borrow(Py_None));
  engine.runtime().spawn(follow(over, state), "the wait of a weft.Operation");
  return operation;
}

}  // namespace weft::python
