// How busy a PE is, and which entry methods it runs, for `weft run --stats`; and which of them keep the PE from its other work for long,
// for `weft run --check`.
//
// Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/runtime/runtime.h"

namespace weft::job {

class Activity final : public runtime::Observer {
 public:
  using Clock = std::chrono::steady_clock;

  // Measures from here on, unless the runtime has an observer already. `now` is for tests.
  explicit Activity(runtime::Runtime& runtime, Clock::time_point (*now)() = &Clock::now);
  ~Activity() override;
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // Ends the measurement. Lines about this PE: how long it was busy and idle, then a table of the entry methods, the
  // longest first, and a line for each method whose long runs kept other work of the PE waiting. If the program has set an observer of
  // its own, one line says that nothing was measured.
  std::vector<std::string> end();
  // A line for each entry method that has run for kLong or more without a wait, the longest first. Call
  // before end().
  std::vector<std::string> long_runs() const;
  static constexpr Clock::duration kLong = std::chrono::milliseconds(100);

  bool observes_communication() const override { return false; }
  void entry_began(const runtime::EntryEvent& event) override;
  void entry_ended(const runtime::EntryEvent& event) override;
  void entry_suspended(const void* run) override;
  void entry_resumed(const void* run) override;
  void idle_began() override { idle_since_ = now_(); }
  void idle_ended() override { idle_time_ += now_() - idle_since_; }

 private:
  struct Runs {
    std::uint64_t count = 0;
    Clock::duration time{};  // of the runs that have ended
    std::uint64_t num_long = 0;
    Clock::duration longest{};
    std::uint64_t num_awaited = 0;
    Clock::duration longest_awaited{};  // long runs that began while other work was queued
  };
  struct Run {
    std::string_view method;
    Clock::time_point began;
    Clock::time_point resumed;
    bool is_suspended = false;
    bool is_awaited = false;  // other work was queued when it began or was resumed
  };
  void end_part(Run& run, Clock::time_point now);

  runtime::Runtime& runtime_;
  Clock::time_point (*now_)();
  Clock::time_point began_;
  Clock::time_point idle_since_;
  Clock::duration idle_time_{};
  std::unordered_map<std::string_view, Runs> methods_;
  std::unordered_map<const void*, Run> running_;
};

}  // namespace weft::job
