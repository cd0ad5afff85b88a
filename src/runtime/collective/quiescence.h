// Quiescence detection: Mattern's four counters over the spanning tree of PE 0. And the detection of a standstill, by the same waves.
//
// A wave sums, over all PEs, the counted things sent and processed; each PE answers when its queue is empty.
// When two waves in a row give the same sums and as many were processed as sent, nothing was under way
// between them.
//
// A standstill is more: the program cannot go on by itself either. The waves that look for it come seldom, and ask each PE what it
// waits for besides counted messages: the operations of note_uncounted(), calls that wait for room, copies, and what the program
// itself says (ProgramActivity). Two of these waves must agree. For one-sided copies and for some control messages, as those of atomic
// operations, no PE says that it waits: they make the program take steps, which are counted too, and between the two waves there is a
// second for them.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/runtime/future.h"
#include "weft/runtime/message.h"
#include "weft/runtime/program_activity.h"

namespace weft::runtime {

class Reductions;

class Quiescence {
 public:
  Quiescence(Messenger& messenger, Reductions& reductions);

  Future<> detect();
  // See Runtime.
  Future<> standstill();
  void note_uncounted(const Future<>& end);
  void set_program_activity(ProgramActivity* activity) { activity_ = activity; }

  // --- For HangWatch
  // Operations of note_uncounted() that are under way on this PE, but for waits for quiescence.
  std::uint64_t num_uncounted() const { return num_uncounted_ - num_detecting_; }
  // See ProgramActivity::poll(); 0 if the program has none.
  std::optional<std::uint64_t> steps() const {
    return activity_ == nullptr ? std::optional<std::uint64_t>(0) : activity_->poll();
  }
  // Called on PE 0 in each wave that finds what the wave before has found, and something that was sent and not processed.
  void set_stall_function(std::function<void()> function) { on_stall_ = std::move(function); }

 private:
  struct Retry;
  using Counts = std::vector<std::uint64_t>;  // by Count

  void start(Future<> waiter);
  void on_loss(int pe);
  void begin_wave();
  void on_probe(Pup p);
  // `polls`: whether the wave polls ProgramActivity, to find a standstill.
  void answer(std::uint64_t wave, bool polls);
  Counts counts(bool polls) const;
  void on_result(Pup p);
  void judge_quiescence(const Counts& counts);
  void judge_standstill(Counts counts);
  void poll_after(double seconds);

  Messenger& messenger_;
  Reductions& reductions_;
  // The state of this PE.
  ProgramActivity* activity_ = nullptr;
  std::uint64_t num_uncounted_ = 0;
  std::uint64_t num_detecting_ = 0;  // of them
  std::function<void()> on_stall_;

  // --- On PE 0 only
  std::vector<Future<>> waiters_;
  bool active_ = false;  // a wave is under way, or follows soon
  std::uint64_t wave_ = 0;
  Counts previous_;  // of the wave before, if it counts
  double pause_seconds_ = 0;
  // The standstill; empty if nothing waits for it.
  std::vector<Future<>> watchers_;
  bool poll_is_due_ = false;
  bool wave_polls_ = false;
  Counts last_poll_;  // of the poll before, if it may have been a standstill
  double poll_pause_seconds_ = 0;
};

}  // namespace weft::runtime
