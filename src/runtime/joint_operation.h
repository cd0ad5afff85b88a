// One operation for several.
//
// Threads: one PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/operation.h"

namespace weft::runtime {

// The end of the last part completes it.
class JointOperation {
 public:
  explicit JointOperation(OperationState* all) : all_(all) {}
  ~JointOperation() {
    // A peer that has ended is no failure of the program, see Channels.
    if (failure_.code() == base::StatusCode::kClosed) all_->observe();
    all_->complete(std::move(failure_), size_bytes_);
  }
  JointOperation(const JointOperation&) = delete;
  JointOperation& operator=(const JointOperation&) = delete;
  void end_part(const base::Status& status, std::size_t size_bytes) {
    if (failure_.ok() && status.failed()) failure_ = status;
    size_bytes_ += size_bytes;
  }

 private:
  OperationState* all_;
  std::size_t size_bytes_ = 0;
  base::Status failure_;
};

// An operation that is over when all of these are, with the first failure. REQUIRES: there is one at least.
inline Operation all_of(Messenger& messenger, std::vector<Operation> operations) {
  if (operations.size() == 1) return std::move(operations.front());
  OperationState* const all = OperationState::create(messenger);
  all->started(base::Status::pending(), 0);
  const auto joint = std::make_shared<JointOperation>(all);
  for (Operation& part : operations) {
    std::move(part).then(
        [joint](const base::Status& status, std::size_t size_bytes) { joint->end_part(status, size_bytes); });
  }
  return Operation(all);
}

}  // namespace weft::runtime
