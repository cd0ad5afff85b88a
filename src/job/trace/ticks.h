// The processor's counter of ticks as a clock: a reading takes a third of the time of a reading of the steady clock.
//
// Where the counter is not known to run at one rate on all cores, the ticks are nanoseconds of the steady clock.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft::job {

class TickClock {
 public:
  // Starts at tick 1.
  TickClock();

  std::uint64_t ticks_since_start() const { return read() - start_.ticks + 1; }
  // Compares the counter with the steady clock, for time_ns().
  void stop() { stop_ = now(); }
  // REQUIRES: stop() was called.
  std::uint64_t ticks_at_stop() const { return stop_.ticks - start_.ticks + 1; }
  // The time of the steady clock. REQUIRES: stop() was called.
  std::int64_t time_ns(std::uint64_t ticks_since_start) const;

 private:
  struct Instant {
    std::uint64_t ticks = 0;
    std::int64_t time_ns = 0;
  };

  static std::int64_t steady_ns() {
    using std::chrono::steady_clock;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch())
        .count();
  }
  std::uint64_t read() const {
#if defined(__x86_64__)
    if (is_counter_steady_) [[likely]]
      return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return static_cast<std::uint64_t>(steady_ns());
  }
  // Both clocks at one time. PEs of a host compare them each for itself, and an arrow from one to another must not lead back in time.
  Instant now() const;

  bool is_counter_steady_;
  Instant start_;
  Instant stop_;
};

}  // namespace weft::job
