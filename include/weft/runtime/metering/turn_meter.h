// How a PE spends its time: idle, in communication, or otherwise busy, for readers of other processes (`weft top`).
//
// One turn in kMeasuredTurns is measured, or more of them if they are long, and one short idle time in kMeasuredIdles; each counts for all of
// them. The others read no clock. A long idle time is measured as a whole. Without a listener nothing is measured, and a turn costs the same.
// Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft::runtime {

class TurnMeter {
 public:
  using Clock = std::chrono::steady_clock;

  struct Times {
    Clock::time_point now;
    Clock::duration idle{};           // until `idle_since`, if that is set
    Clock::duration communication{};  // in which the machine moved bytes while the PE had work
    Clock::time_point idle_since;     // the clock's epoch: the PE is not idle, or for a short time only
  };
  // Both functions are called rarely: for no message that comes after a short idle time, and in few turns of a busy PE.
  struct Listener {
    virtual ~Listener() = default;
    // The PE has been idle for a long time, or it is busy again.
    virtual void times_changed(const Times& times) = 0;
    // About every kPublishInterval while the PE makes turns, and in front of each sleep. The times may have changed, too.
    virtual void publish(const Times& times) = 0;
  };
  // Primes, so that the turns of a program that repeats itself are measured by turns.
  static constexpr std::int64_t kMeasuredTurns = 127;
  static constexpr std::int64_t kMeasuredIdles = 61;
  static constexpr Clock::duration kPublishInterval = std::chrono::milliseconds(20);
  // What a sample counts at most: in a longer one the system has given the processor to another thread.
  static constexpr Clock::duration kLongestSample = std::chrono::microseconds(200);

  // Null for none. `listener` must live until another one, or null, is set.
  void set_listener(Listener* listener);

  // --- Load balancing: the loads of this PE's objects in the last step
  void begin_step() {
    ++num_steps_;
    step_load_s_ = 0;
  }
  void add_load(double load_s) { step_load_s_ += load_s; }
  std::uint64_t num_steps() const { return num_steps_; }
  double step_load_s() const { return step_load_s_; }

  // --- The scheduler's
  bool is_turn_measured() { return --turns_left_ == 0; }
  bool is_idle_measured() { return --idles_left_ == 0; }
  // The machine's part of a measured turn. `had_work`: the turn was no idle one.
  void turn_measured(Clock::time_point begin, Clock::time_point end, bool had_work);
  // An idle time that is_idle_measured() begins. The scheduler calls end_idle() when it ends.
  void begin_idle(Clock::time_point now);
  // The PE has been idle since then for a long time, which the scheduler decides; may be called again. Returns whether end_idle() must be
  // called at its end.
  bool begin_long_idle(Clock::time_point since);
  void end_idle(Clock::time_point now);
  bool is_idle() const { return state_ != State::kBusy; }
  void before_sleep(Clock::time_point now) {
    if (listener_ != nullptr) publish(now);
  }

 private:
  enum class State : std::uint8_t { kBusy, kPolls, kIdle };

  Times times(Clock::time_point now) const {
    return {now, idle_, communication_, state_ == State::kIdle ? idle_began_ : Clock::time_point{}};
  }
  void publish(Clock::time_point now);

  // They count down to 0. Without a listener they begin below it.
  std::int64_t turns_left_ = -1;
  std::int64_t idles_left_ = -1;
  Listener* listener_ = nullptr;
  std::int64_t turns_ = 1;  // for how many the next measured one counts
  State state_ = State::kBusy;
  Clock::time_point idle_began_;
  Clock::duration idle_{};
  Clock::duration communication_{};
  Clock::time_point measured_at_;
  Clock::time_point published_at_;
  std::uint64_t num_steps_ = 0;
  double step_load_s_ = 0;
};

}  // namespace weft::runtime
