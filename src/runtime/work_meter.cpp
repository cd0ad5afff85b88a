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

void WorkMeter::Span::begin() {
  auto now = Clock::now();
  if (outer_ != nullptr) {
    if (!outer_is_skipped_) outer_->add(meter_.time_until(now));
    outer_->measure_next(WorkTime::kExactSpans);  // a part of a span must not count for several
  }
  if (now - meter_.asked_at_ >= kLong) [[unlikely]]
    meter_.ask(now);
  meter_.since_ = now;
}

void WorkMeter::Span::end() {
  auto now = Clock::now();
  if (outer_ == nullptr) {
    time_.get()->add_span(meter_.time_until(now));
  } else {
    time_.get()->add(meter_.time_until(now));
  }
  meter_.since_ = now;
}

Clock::duration WorkMeter::time_until(Clock::time_point& now) {
  const Clock::duration time = now - since_;
  if (time < kLong) [[likely]]
    return time;
  return long_time_until(now);
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
