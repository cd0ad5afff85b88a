#include "weft/runtime/metering/turn_meter.h"

#include <algorithm>
#include <utility>

namespace weft::runtime {

void TurnMeter::set_listener(Listener* listener) {
  listener_ = listener;
  turns_ = 1;
  turns_left_ = listener == nullptr ? -1 : turns_;
  idles_left_ = listener == nullptr ? -1 : kMeasuredIdles;
  state_ = State::kBusy;
  if (listener == nullptr) return;
  measured_at_ = Clock::now();
  publish(measured_at_);
}

void TurnMeter::turn_measured(Clock::time_point begin, Clock::time_point end, bool had_work) {
  if (had_work) communication_ += std::min(end - begin, kLongestSample) * turns_;
  // As many as will take the interval, but no more than twice as many as before: the next ones may take longer.
  const Clock::duration since = std::max(end - std::exchange(measured_at_, end), Clock::duration(1));
  const std::int64_t most = std::min(2 * turns_, kMeasuredTurns);
  turns_ = std::clamp<std::int64_t>(turns_ * kPublishInterval / since, 1, most);
  turns_left_ = turns_;
  if (end - published_at_ >= kPublishInterval) publish(end);
}

void TurnMeter::begin_idle(Clock::time_point now) {
  idles_left_ = kMeasuredIdles;
  if (state_ != State::kBusy) return;
  state_ = State::kPolls;
  idle_began_ = now;
}

bool TurnMeter::begin_long_idle(Clock::time_point since) {
  if (listener_ == nullptr) return false;
  if (state_ == State::kIdle) return true;
  if (state_ == State::kPolls) idle_ += std::min(since - idle_began_, kLongestSample) * kMeasuredIdles;
  state_ = State::kIdle;
  idle_began_ = since;
  if (since - published_at_ >= kPublishInterval) {
    publish(since);
  } else {
    listener_->times_changed(times(since));
  }
  return true;
}

void TurnMeter::end_idle(Clock::time_point now) {
  const State before = std::exchange(state_, State::kBusy);
  if (before == State::kPolls) idle_ += std::min(now - idle_began_, kLongestSample) * kMeasuredIdles;
  if (before != State::kIdle) return;
  idle_ += now - idle_began_;
  listener_->times_changed(times(now));
}

void TurnMeter::publish(Clock::time_point now) {
  published_at_ = now;
  listener_->publish(times(now));
}

}  // namespace weft::runtime
