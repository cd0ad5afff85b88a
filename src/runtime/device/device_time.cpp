#include "weft/runtime/metering/device_time.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"
#include "memory/kinds/kind.h"
#include "memory/memory.h"

namespace weft::runtime {

using base::Status;

namespace {

// With fewer pending spans end() does not look whether the device is done with one.
constexpr std::size_t kFewPending = 16;

}  // namespace

// The operation that waits for a span keeps a share of it.
struct DeviceTime::Span {
  Span(memory::Place place_in, memory::StreamHandle stream_in, memory::KindBackend* kind_in)
      : place(place_in), stream(stream_in), kind(kind_in) {}
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    for (const memory::EventHandle event : {begin, end}) {
      if (event != nullptr) kind->release_event(event);
    }
  }

  // Fills `event`, unless the span has failed.
  void record(memory::EventHandle& event) {
    if (failure.failed()) return;
    const memory::StreamHandle named = stream == nullptr ? kind->default_stream() : stream;
    base::Result<memory::EventHandle> recorded = kind->record_timed(named, place.device);
    if (recorded.ok()) {
      event = *recorded;
    } else {
      failure = recorded.status();
    }
  }

  memory::Place place;
  memory::StreamHandle stream;
  memory::KindBackend* kind;  // null: the span has failed
  int depth = 1;              // the begins without an end
  std::uint64_t number = 0;
  std::uint64_t observed_number = 0;  // 0: no observer has seen it begin
  memory::EventHandle begin = nullptr;
  memory::EventHandle end = nullptr;
  Status failure;

  DeviceWorkEvent event() const { return {observed_number, place, stream}; }
};

std::size_t DeviceTime::find_open(memory::Place place, memory::StreamHandle stream) const {
  const auto is_there = [&](const auto& span) { return span->place == place && span->stream == stream; };
  return static_cast<std::size_t>(std::ranges::find_if(open_, is_there) - open_.begin());
}

void DeviceTime::begin(memory::Place place, memory::StreamHandle stream) {
  if (runtime_.closed()) return;
  const std::size_t found = find_open(place, stream);
  if (found != open_.size()) {
    ++open_[found]->depth;
    return;
  }
  memory::KindBackend* const kind = runtime_.memory().backend(place.kind);
  auto span = std::make_shared<Span>(place, stream, kind);
  if (kind == nullptr) span->failure = runtime_.memory().availability(place.kind);
  span->record(span->begin);
  if (Observer* const observer = runtime_.observer(); observer != nullptr && !span->failure.failed()) {
    span->observed_number = ++runtime_.device_meter().num_observed;
    observer->device_work_began(span->event());
  }
  open_.push_back(std::move(span));
}

void DeviceTime::end(memory::Place place, memory::StreamHandle stream) {
  const std::size_t found = find_open(place, stream);
  if (found == open_.size() || --open_[found]->depth > 0) return;
  std::shared_ptr<Span> span = std::exchange(open_[found], open_.back());
  open_.pop_back();
  if (runtime_.closed()) return;
  span->record(span->end);
  if (span->failure.failed()) return report(span->failure);
  span->number = ++runtime_.device_meter().num_spans;
  if (span->observed_number != 0) observe_end(span);
  pending_.push_back(std::move(span));
  if (pending_.size() > settles_at_) {
    settle();
    settles_at_ = std::max(kFewPending, 2 * pending_.size());
  }
}

void DeviceTime::observe_end(const std::shared_ptr<Span>& span) {
  OperationState* const state = OperationState::create(runtime_);
  state->started(runtime_.memory().when_event_done(span->place, span->end, state->completion()), 0);
  Operation(state).then([&runtime = runtime_, span](const Status& status, std::size_t) {
    double seconds = 0;
    if (status.failed() || runtime.observer() == nullptr) return;
    if (span->kind->elapsed(span->begin, span->end, seconds).ok())
      runtime.observer()->device_work_measured(span->event(), seconds);
  });
}

void DeviceTime::settle() {
  if (runtime_.closed()) return;
  std::erase_if(pending_, [this](const auto& span) { return settle(*span); });
}

bool DeviceTime::settle(const Span& span) {
  double seconds = 0;
  const Status status =
      span.failure.failed() ? span.failure : span.kind->elapsed(span.begin, span.end, seconds);
  if (status.is_pending()) return false;
  if (status.failed()) {
    report(status);
  } else if (seconds > 0) {  // a device's clock may be coarse
    add(seconds);
  }
  return true;
}

void DeviceTime::report(const Status& status) {
  if (std::exchange(runtime_.device_meter().has_failed, true)) return;
  const std::string text = base::format(
      "weft: PE {}: a span of device work could not be measured, and counts as 0 s in load balancing: {}; "
      "further such failures of this PE are not reported\n",
      runtime_.pe(), status.to_string());
  std::fputs(text.c_str(), stderr);
}

std::uint64_t DeviceTime::number_of(const std::shared_ptr<Span>& span) { return span->number; }

std::uint64_t DeviceTime::last_pending(std::uint64_t most) const {
  const auto behind = std::ranges::upper_bound(pending_, most, {}, number_of);
  return behind == pending_.begin() ? 0 : (*std::prev(behind))->number;
}

void DeviceTime::when_done(std::uint64_t number, std::function<void()> done) {
  std::shared_ptr<Span> span = *std::ranges::find(pending_, number, number_of);
  OperationState* const state = OperationState::create(runtime_);
  state->started(runtime_.memory().when_event_done(span->place, span->end, state->completion()), 0);
  Operation(state).then([span = std::move(span), done = std::move(done)](const Status& status, std::size_t) {
    if (status.failed()) span->failure = status;
    done();
  });
}

}  // namespace weft::runtime
