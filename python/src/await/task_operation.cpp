#include "await/task_operation.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/operation.h"

#include "await/operation.h"

namespace weft::python {

namespace {

runtime::Task<> follow(runtime::Task<> task, runtime::OperationState* state) {
  base::Status status;
  try {
    co_await std::move(task);
  } catch (const base::Error& error) {
    status = base::Status(error.code(), error.what());
  }
  state->complete(std::move(status), 0);
}

}  // namespace

Ref start_task(Engine& engine, runtime::Task<> task, Ref keeper) {
  engine.expect_open();
  auto* const state = runtime::OperationState::create(engine.runtime());
  state->started(base::Status::pending(), 0);
  Ref operation = make_operation_object(engine, state, std::move(keeper), Ref::borrow(Py_None));
  engine.runtime().spawn(follow(std::move(task), state), "an operation of a queued channel");
  return operation;
}

}  // namespace weft::python
