// Measures how long a PE's thread works for an object: load balancing reads the times.
//
// A Span measures the time from its construction to its destruction for one WorkTime. A Span inside another one stops the
// outer one meanwhile, so no time counts twice. A coroutine that is resumed by the queue counts for the WorkTime that was
// measured when it suspended (ResumeWork::suspend).
//
// Two reads of the clock cost more than a small entry method. So an object whose last spans have all been short is sampled: one
// span in kSampledSpans is measured and counts for all of them, or one in kSampledVeryShort if the last sample was very short.
// After a long span every span is measured, the longer the more of them. So the time of a long span is missed only if so many
// short ones come before it that they take ten times as long.
//
// If nothing is measured or observed, a suspension costs a branch and reads no clock.
//
// A span takes longer if another process has the processor meanwhile: a time slice of some ms counts for one object, by chance. With
// leave_out_waits() the meter asks the system how long the thread has waited for a processor. It asks after each span of kLong, and
// before a span if it has not asked for so long, because that takes about a microsecond. A wait that it does not take off is
// therefore shorter than kLong, or it was less than kLong behind the last question and before its span. What it takes off was a wait.
//
// The meter also knows which coroutine of C++ runs, if the PE has an observer: a resumption is reported for the run that suspended.
//
// On request the objects are also told what they send: models count each message to an element (counts_messages()).
// Threads: the PE's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "weft/runtime/observer.h"

namespace weft::runtime {

// The time of one object, with a reference count: a suspended coroutine may outlive the object on this PE.
class WorkTime {
 public:
  using Clock = std::chrono::steady_clock;
  // After a span of n times kShort, n * kExactSpans spans are measured before the object is sampled again.
  static constexpr Clock::duration kShort = std::chrono::microseconds(10);
  static constexpr std::uint32_t kExactSpans = 4096;
  static constexpr std::uint16_t kSampledSpans = 16;
  static constexpr Clock::duration kVeryShort = std::chrono::microseconds(1);
  static constexpr std::uint16_t kSampledVeryShort = 64;

  WorkTime() = default;
  WorkTime(const WorkTime&) = delete;
  WorkTime& operator=(const WorkTime&) = delete;

  void acquire() { ++references_; }
  void release() {
    if (--references_ == 0) delete this;
  }

  void add(Clock::duration time) { time_ += time; }
  Clock::duration time() const { return time_; }
  double seconds() const { return std::chrono::duration<double>(time_).count(); }
  void reset() { time_ = {}; }
  // A coroutine that counts for this object has been resumed, and has suspended again or ended. Inside its span.
  virtual void resumed() {}
  // The object has sent a message with that many bytes of arguments or data to that element.
  virtual void sent(ElementId, std::uint64_t) {}

 protected:
  virtual ~WorkTime() = default;

 private:
  friend class WorkMeter;

  // Whether the next span is not measured.
  bool skip_span() {
    if (skips_left_ == 0) return false;
    --skips_left_;
    return true;
  }
  void add_span(Clock::duration time) {
    if (time >= kShort) {
      measure_next(static_cast<std::uint64_t>(time / kShort) * kExactSpans);
    } else if (exact_left_ != 0) {
      --exact_left_;
    } else {
      const std::uint16_t next = time < kVeryShort ? kSampledVeryShort : kSampledSpans;
      // It counts for the spans since the last sample: their number must not depend on its own length.
      time *= std::exchange(sampled_, next);
      skips_left_ = next - 1;
    }
    time_ += time;
  }
  void measure_next(std::uint64_t num_spans) {
    exact_left_ = std::max(exact_left_, num_spans);
    skips_left_ = 0;
    sampled_ = 1;
  }

  Clock::duration time_{};
  std::uint32_t references_ = 0;
  std::uint16_t skips_left_ = 0;
  std::uint16_t sampled_ = 1;  // the number of spans for which the next sample counts
  std::uint64_t exact_left_ = kExactSpans;
};

// A share of a WorkTime or of nothing.
class WorkTimeShare {
 public:
  WorkTimeShare() = default;
  explicit WorkTimeShare(WorkTime* time) : time_(time) {
    if (time_ != nullptr) time_->acquire();
  }
  WorkTimeShare(WorkTimeShare&& other) noexcept : time_(std::exchange(other.time_, nullptr)) {}
  WorkTimeShare& operator=(WorkTimeShare&& other) noexcept {
    std::swap(time_, other.time_);
    return *this;
  }
  ~WorkTimeShare() {
    if (time_ != nullptr) [[unlikely]]
      time_->release();
  }

  WorkTime* get() const { return time_; }

 private:
  WorkTime* time_ = nullptr;
};

class WorkMeter {
 public:
  WorkMeter() = default;
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;

  // The time of the object that is measured now; null for none.
  WorkTime* running() const { return running_; }
  // The run for the observer, see EntryEvent; null for none.
  const void* run() const { return run_; }
  // Sets it, and returns the one before.
  const void* exchange_run(const void* run) { return std::exchange(run_, run); }
  bool is_noted() const { return running_ != nullptr || run_ != nullptr; }

  // How long the thread has waited for a processor while it could run, since any fixed time.
  using WaitClock = std::function<WorkTime::Clock::duration()>;
  // From now on these waits do not count. Empty: they count, as they do at first.
  void leave_out_waits(WaitClock clock);
  bool leaves_out_waits() const { return wait_clock_ != nullptr; }
  static constexpr WorkTime::Clock::duration kLong = std::chrono::microseconds(500);

  // Whether models report each message to an element with count_message(). False at first: to report costs more than a branch.
  bool counts_messages() const { return counts_messages_; }
  void set_counts_messages(bool counts) { counts_messages_ = counts; }
  // Counts a message that the measured object has sent.
  void count_message(ElementId to, std::uint64_t size_bytes) {
    if (running_ != nullptr) running_->sent(to, size_bytes);
  }

  class Span {
   public:
    Span(WorkMeter& meter, WorkTime& time)
        : meter_(meter), time_(&time), outer_(meter.running_), outer_is_skipped_(meter.is_skipped_) {
      meter_.running_ = &time;
      meter_.is_skipped_ = outer_ == nullptr && time.skip_span();
      if (!meter_.is_skipped_) [[unlikely]]
        begin();
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    ~Span() {
      if (!meter_.is_skipped_) [[unlikely]]
        end();
      meter_.running_ = outer_;
      meter_.is_skipped_ = outer_is_skipped_;
    }

   private:
    // Read the clock. Out of line, so that a span that is not measured is a few instructions in each entry method.
    [[gnu::noinline]] void begin();
    [[gnu::noinline]] void end();

    WorkMeter& meter_;
    WorkTimeShare time_;  // the object may be destroyed inside the span
    WorkTime* outer_;     // a span of its own keeps it
    bool outer_is_skipped_;
  };

 private:
  // The time of the running span since since_. Moves `now` on if it takes long to find out.
  WorkTime::Clock::duration time_until(WorkTime::Clock::time_point& now);
  WorkTime::Clock::duration long_time_until(WorkTime::Clock::time_point& now);
  // Sets waited_ and asked_at_. REQUIRES: waits are left out.
  [[gnu::noinline]] void ask(WorkTime::Clock::time_point& now);

  WorkTime* running_ = nullptr;
  const void* run_ = nullptr;
  bool is_skipped_ = false;  // the running span is not measured
  bool counts_messages_ = false;
  WorkTime::Clock::time_point since_;
  WaitClock wait_clock_;
  WorkTime::Clock::duration waited_{};  // by its last answer
  // The end of time: waits are not left out.
  WorkTime::Clock::time_point asked_at_ = WorkTime::Clock::time_point::max();
};

}  // namespace weft::runtime
