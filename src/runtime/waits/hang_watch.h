// HangWatch: finds out that a program hangs, and gathers what its parties wait for.
//
// PE 0 looks in front of its sleeps, so a job that works pays nothing. It asks each PE by an urgent message, which a PE handles also while
// a call of it waits for other PEs. If all are idle, and no PE has a sleep, a copy or anything else that can go on, and nothing has changed
// for a time, the program hangs. docs/decisions/hang-reports.md has the reasons.
//
// Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/hang_settings.h"
#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"

#include "runtime/waits/wait_report.h"

namespace weft::runtime {

class Quiescence;

class HangWatch final : private IdleWatch {
 public:
  // `list_models` adds what the models list.
  HangWatch(Messenger& messenger, Quiescence& quiescence, std::function<void(WaitList& waits)> list_models);
  ~HangWatch() override;
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // From now on the PE looks for hangs. REQUIRES: PE 0.
  void start(const HangSettings& settings);
  // Called with each report of a program that hangs, in place of the text on stderr; null for none.
  void set_listener(std::function<void(const std::string& report)> listener) {
    listener_ = std::move(listener);
  }
  // How often it has asked the PEs whether they are idle.
  std::uint64_t num_looks() const { return wave_; }
  // Asks all PEs, and calls `done` with the report when they have answered, or a second later; if the job hangs, 20 s later. Does nothing
  // if a report is under way. `hangs`: see wait_report(). REQUIRES: PE 0.
  void gather(bool hangs, std::function<void(const std::string& report)> done);
  // Someone waits for quiescence, which does not come: nothing has changed for a while, and not all that was sent was handled. The waves
  // of quiescence keep the PEs from being idle.
  void quiescence_stalls();

 private:
  using Clock = std::chrono::steady_clock;

  // What a PE answers.
  struct Sample {
    std::uint64_t wave = 0;
    std::uint64_t sent = 0;
    std::uint64_t processed = 0;
    std::uint64_t steps = 0;  // of the program
    std::uint32_t is_idle = 0;
    std::uint32_t may_go_on = 0;  // something of the PE needs no message
  };

  std::int64_t look(Clock::duration idle_for) override;
  void begin_wave(bool is_in_quiescence);
  Sample sample(std::uint64_t wave, bool is_in_quiescence);
  // Whether nothing has happened between the two.
  static bool is_same(const Sample& one, const Sample& other);
  // Since when nothing has happened on this PE, as far as the waves know; now if it is at work.
  Clock::time_point idle_since() const;
  void on_probe(const MessagePtr& message);
  void on_answer(const MessagePtr& message);
  void judge();
  void report(Clock::duration idle_for);
  void on_ask(const MessagePtr& message);
  void on_tell(const MessagePtr& message);
  void tell(std::uint64_t number);
  WaitList list_waits();
  void end_gathering_later(Clock::duration time);
  void finish_gathering();
  // Calls the function in a turn of its own, or at once if a call of the PE waits for other PEs.
  void in_turn(std::function<void()> function);
  void send_urgent(int pe, MessagePtr message);

  Messenger& messenger_;
  Quiescence& quiescence_;
  const std::function<void(WaitList& waits)> list_models_;
  HangSettings settings_;
  std::function<void(const std::string& report)> listener_;
  bool is_on_ = false;
  Sample last_sample_;            // of this PE
  Clock::time_point idle_since_;  // if that was idle, and nothing of the PE could go on

  // --- On PE 0
  Clock::duration interval_{};
  std::uint64_t wave_ = 0;
  int answers_left_ = 0;  // of the wave; 0: none is under way
  Clock::time_point wave_began_;
  std::vector<Sample> samples_;  // by PE
  std::vector<Sample> quiet_;    // those of the wave before, if all were quiet then
  Clock::time_point quiet_since_;
  bool is_reported_ = false;  // the hang that `quiet_` is

  std::uint64_t gathering_ = 0;  // the number of the report
  int lists_left_ = 0;
  bool hangs_ = false;
  Clock::time_point deadline_;
  std::vector<WaitsOfPe> lists_;
  std::function<void(const std::string&)> done_;
};

}  // namespace weft::runtime
