#include "weft/runtime/work_meter.h"

#include <algorithm>
#include <utility>

namespace weft::runtime {

using Clock = WorkTime::Clock;

void WorkMeter::leave_out_waits(WaitClock clock) {
  wait_clock_ = std::move(clock);
  asked_at_ = Clock::time_point::max();
  if (!wait_clock_) return;
  auto now = Clock::now();
  ask(now);
}

void WorkMeter::ask(Clock::time_point& now) {
  waited_ = wait_clock_();
  asked_at_ = now = Clock::now();
}

Clock::duration WorkMeter::long_time_until(Clock::time_point& now) {
  if (!wait_clock_ || asked_at_ > since_) return now - since_;
  const Clock::duration waited_before = waited_;
  const Clock::duration before_span = since_ - asked_at_;
  ask(now);
  // The thread may have waited before the span.
  const Clock::duration waited = std::max(waited_ - waited_before - before_span, Clock::duration::zero());
  const Clock::duration time = now - since_;
  return time - std::min(waited, time);
}

}  // namespace weft::runtime
