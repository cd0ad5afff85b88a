// An operation of the core whose end is a Future, as a weft.Operation.
//
// Threads: the PE's thread.
#pragma once

#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/future.h"
#include "weft/runtime/operation.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// Completes an operation once, also if the job ends first.
class OperationEnding {
 public:
  explicit OperationEnding(runtime::OperationState* state) : state_(state) {}
  OperationEnding(const OperationEnding&) = delete;
  OperationEnding& operator=(const OperationEnding&) = delete;
  ~OperationEnding() { end(base::Status(base::StatusCode::kClosed, "the job has ended")); }
  void end(base::Status status) {
    if (state_ != nullptr) std::exchange(state_, nullptr)->complete(std::move(status), 0);
  }

 private:
  runtime::OperationState* state_;
};

// It is over with `over`, gives None, and fails with its Error. `keeper` stays until then.
Ref operation_of(Engine& engine, const runtime::Future<>& over, Ref keeper);

}  // namespace weft::python
