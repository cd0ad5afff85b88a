// Several operations on global memory as one weft.Operation: it is over when the last of them is, and fails with the first error.
//
//   JointOperation joint(engine);
//   joint.keep(array);
//   joint.add([&] { return pgas.put(...); });
//   return std::move(joint).operation(result);
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/rma/done.h"
#include "weft/runtime/operation.h"

#include "await/operation.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

class JointOperation {
 public:
  explicit JointOperation(Engine& engine) : engine_(engine), outcome_(std::make_shared<Outcome>()) {}

  // `start` returns a Done. After a failure nothing more is started.
  template <class Start>
  void add(Start start) {
    if (outcome_->status.failed()) return;
    try {
      runtime::OperationState* const state = start().release();
      if (state == nullptr) return;
      in_flight_ = true;
      ++outcome_->open;
      runtime::Operation(state).then([outcome = outcome_](const base::Status& status, std::size_t) {
        --outcome->open;
        outcome->note(status);
      });
    } catch (const base::Error& error) {
      outcome_->note(base::Status(error.code(), error.what()));
    }
  }
  // Keeps an object until all are over, also if the call fails meanwhile. Call it before the part that needs the object starts.
  void keep(Ref keeper) {
    if (keeper) outcome_->keepers.push_back(std::move(keeper));
  }
  // Throws base::Error if one has failed and none is in flight.
  Ref operation(Ref result) && {
    if (!in_flight_) {
      if (outcome_->status.failed()) base::throw_status(outcome_->status);
      return make_finished_operation(std::move(result));
    }
    auto* const state = runtime::OperationState::create(engine_.runtime());
    outcome_->state = state;
    outcome_.reset();
    return make_operation_object(engine_, state, Ref(), std::move(result));
  }

 private:
  // The last of its owners is gone when all operations are over, or were dropped with the job.
  struct Outcome {
    void note(base::Status part) {
      if (part.failed() && status.ok()) status = std::move(part);
    }
    ~Outcome() {
      if (open > 0) note(base::Status(base::StatusCode::kClosed, "the job has ended"));
      if (state != nullptr) state->complete(std::move(status), 0);
    }
    std::vector<Ref> keepers;
    base::Status status;
    std::size_t open = 0;  // operations whose end was not told
    runtime::OperationState* state = nullptr;
  };

  Engine& engine_;
  std::shared_ptr<Outcome> outcome_;
  bool in_flight_ = false;
};

}  // namespace weft::python
