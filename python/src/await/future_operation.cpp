#include "await/future_operation.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/task.h"

#include "await/operation.h"

namespace weft::python {

namespace {

// Completes the operation once, also if the job ends first.
class Ending {
 public:
  explicit Ending(runtime::OperationState* state) : state_(state) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() { end(base::Status(base::StatusCode::kClosed, "the job has ended")); }
  void end(base::Status status) {
    if (state_ != nullptr) std::exchange(state_, nullptr)->complete(std::move(status), 0);
  }

 private:
  runtime::OperationState* state_;
};

runtime::Task<> follow(runtime::Future<> over, runtime::OperationState* state) {
  Ending ending(state);
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
