// One operation for several messages that carry the same buffers: it ends when the last of them has let go of
// this, with the first failure.
//
// Private to the runtime's own files. Threads: one PE's.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/base/status.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

namespace weft::runtime {

class JointSending {
 public:
  // Takes the sender's share of `operation`, which ends with `size_bytes`.
  JointSending(OperationState* operation, std::size_t size_bytes)
      : operation_(operation), size_bytes_(size_bytes) {}
  ~JointSending() {
    const std::size_t size_bytes = failure_.ok() ? size_bytes_ : 0;
    operation_->complete(std::move(failure_), size_bytes);
  }
  JointSending(const JointSending&) = delete;
  JointSending& operator=(const JointSending&) = delete;

  Runtime& runtime() const { return operation_->runtime(); }
  // How one message's sending has ended.
  void end_part(const base::Status& status) {
    if (failure_.ok() && status.failed()) failure_ = status;
  }

 private:
  OperationState* operation_;
  std::size_t size_bytes_;
  base::Status failure_;
};

}  // namespace weft::runtime
