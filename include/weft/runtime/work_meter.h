// Measures how long a PE's thread works for an object: load balancing reads the times.
//
// A Span measures the time from its construction to its destruction for one WorkTime. A Span inside another one stops the
// outer one meanwhile, so no time counts twice. A coroutine that is resumed by the queue counts for the WorkTime that was
// measured when it suspended (ResumeWork::suspend).
//
// Without an object that is measured, a resumption costs one branch and reads no clock. Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace weft::runtime {

// The time of one object, with a reference count: a suspended coroutine may outlive the object on this PE.
class WorkTime {
 public:
  using Clock = std::chrono::steady_clock;

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
  Clock::duration time_{};
  std::uint32_t references_ = 0;
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
    Span(WorkMeter& meter, WorkTime& time) : meter_(meter), time_(&time), outer_(meter.running_) {
      const auto now = WorkTime::Clock::now();
      if (outer_ != nullptr) outer_->add(now - meter_.since_);
      meter_.running_ = &time;
      meter_.since_ = now;
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    ~Span() {
      const auto now = WorkTime::Clock::now();
      time_.get()->add(now - meter_.since_);
      meter_.running_ = outer_;
      meter_.since_ = now;
    }

   private:
    WorkMeter& meter_;
    WorkTimeShare time_;  // the object may be destroyed inside the span
    WorkTime* outer_;     // a span of its own keeps it
  };

 private:
  WorkTime* running_ = nullptr;
  WorkTime::Clock::time_point since_;
};

}  // namespace weft::runtime
