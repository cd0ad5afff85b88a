// One completion for several messages that carry the same buffers. It is called when the last of them has
// released its JointSending, with the first failure if there is one.
//
// Private to the message layer. Threads: one PE's.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/runtime/scheduler.h"

namespace weft::runtime {

class JointSending {
 public:
  // Calls `sent` with `size_bytes` if nothing fails.
  JointSending(Scheduler& scheduler, base::Completion* sent, std::size_t size_bytes)
      : scheduler_(scheduler), sent_(sent), size_bytes_(size_bytes) {}
  ~JointSending() {
    const std::size_t size_bytes = failure_.ok() ? size_bytes_ : 0;
    sent_->function(sent_, std::move(failure_), size_bytes);
  }
  JointSending(const JointSending&) = delete;
  JointSending& operator=(const JointSending&) = delete;

  Scheduler& scheduler() const { return scheduler_; }
  // The sending of one message has ended with `status`.
  void end_part(const base::Status& status) {
    if (failure_.ok() && status.failed()) failure_ = status;
  }

 private:
  Scheduler& scheduler_;
  base::Completion* sent_;
  std::size_t size_bytes_;
  base::Status failure_;
};

}  // namespace weft::runtime
