// Measures how long a PE's thread works for an object: load balancing reads the times.
//
// A Span measures the time from its construction to its destruction for one WorkTime. A Span inside another one stops the
// outer one meanwhile, so no time counts twice. A coroutine that is resumed by the queue counts for the WorkTime that was
// measured when it suspended (ResumeWork::suspend).
//
// Two reads of the clock cost more than a small entry method. So an object whose last spans have all been short is sampled: one
// span in kSampledSpans is measured and counts for all of them. After a long span every span is measured, the longer the more
// of them. So the time of a long span is missed only if so many short ones come before it that they take ten times as long.
//
// Without an object that is measured, a resumption costs one branch and reads no clock. Threads: the PE's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace weft::runtime {

// The time of one object, with a reference count: a suspended coroutine may outlive the object on this PE.
class WorkTime {
 public:
  using Clock = std::chrono::steady_clock;
  // After a span of n times kShort, n * kExactSpans spans are measured before the object is sampled again.
  static constexpr Clock::duration kShort = std::chrono::microseconds(10);
  static constexpr std::uint32_t kExactSpans = 4096;
  static constexpr std::uint32_t kSampledSpans = 16;

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
      time *= kSampledSpans;
      skips_left_ = kSampledSpans - 1;
    }
    time_ += time;
  }
  void measure_next(std::uint64_t num_spans) {
    exact_left_ = std::max(exact_left_, num_spans);
    skips_left_ = 0;
  }

  Clock::duration time_{};
  std::uint32_t references_ = 0;
  std::uint32_t skips_left_ = 0;
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

  // What is measured now; null for nothing.
  WorkTime* running() const { return running_; }

  class Span {
   public:
    Span(WorkMeter& meter, WorkTime& time)
        : meter_(meter), time_(&time), outer_(meter.running_), outer_is_skipped_(meter.is_skipped_) {
      meter_.running_ = &time;
      meter_.is_skipped_ = outer_ == nullptr && time.skip_span();
      if (meter_.is_skipped_) return;
      const auto now = WorkTime::Clock::now();
      if (outer_ != nullptr) {
        if (!outer_is_skipped_) outer_->add(now - meter_.since_);
        outer_->measure_next(WorkTime::kExactSpans);  // a part of a span must not count for several
      }
      meter_.since_ = now;
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    ~Span() {
      if (!meter_.is_skipped_) {
        const auto now = WorkTime::Clock::now();
        if (outer_ == nullptr) {
          time_.get()->add_span(now - meter_.since_);
        } else {
          time_.get()->add(now - meter_.since_);
        }
        meter_.since_ = now;
      }
      meter_.running_ = outer_;
      meter_.is_skipped_ = outer_is_skipped_;
    }

   private:
    WorkMeter& meter_;
    WorkTimeShare time_;  // the object may be destroyed inside the span
    WorkTime* outer_;     // a span of its own keeps it
    bool outer_is_skipped_;
  };

 private:
  WorkTime* running_ = nullptr;
  bool is_skipped_ = false;  // the running span is not measured
  WorkTime::Clock::time_point since_;
};

}  // namespace weft::runtime
