// Whether yields of the processor take long, because threads that compute want it.
//
// A thread that waits then sleeps in place of a yield: the system runs a thread that wakes before those that compute, and a thread that has
// yielded after them, each for its time slice. Threads: any.
#pragma once

#include <atomic>
#include <chrono>

namespace weft::runtime {

class YieldTimes {
 public:
  using Clock = std::chrono::steady_clock;

  constexpr YieldTimes() = default;

  // A yield is expected to take long.
  bool are_long(Clock::time_point now) const {
    return now.time_since_epoch().count() < long_until_.load(std::memory_order_relaxed);
  }
  // A yield has ended.
  void note(Clock::time_point begin, Clock::time_point end) {
    const Clock::duration time = end - begin;
    if (time >= kLongYield)
      long_until_.store((end + kTimes * time).time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  // Such a yield has given the processor to a thread that computes, for a time slice of some milliseconds. Threads that have little to do take
  // some microseconds.
  static constexpr std::chrono::microseconds kLongYield{500};
  // Yields are expected to take long for so many times as long. Then one of them tells whether they still do.
  static constexpr int kTimes = 16;

  std::atomic<Clock::rep> long_until_ = 0;
};

}  // namespace weft::runtime
