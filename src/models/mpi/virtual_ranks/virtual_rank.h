// VirtualRank: one of several ranks of a process, which runs on a stack of its own and waits while others run.
//
// A rank runs until it waits. It then gives the PE to the scheduler, which resumes it when something has woken it: a request of
// the rank that completes, a message that arrives for it, or a coroutine of it that ends. Nothing polls ranks that wait.
//
// A process with one rank has no VirtualRank: current() is null then, and each place that asks takes one branch.
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "weft/runtime/scheduler.h"
#include "weft/runtime/work.h"

#include "models/mpi/virtual_ranks/object_kind.h"
#include "models/mpi/virtual_ranks/rank_objects.h"
#include "models/mpi/virtual_ranks/running_rank.h"

namespace weft::mpi {

class VirtualRank : private runtime::Work {
 public:
  VirtualRank(const VirtualRank&) = delete;
  VirtualRank& operator=(const VirtualRank&) = delete;
  virtual ~VirtualRank() = default;

  // The rank whose code runs: on its own stack, or in a coroutine of it that the scheduler has resumed. Null in a process with one
  // rank. On the scheduler's stack it stays set after the code has returned, so only code of a rank may ask.
  static VirtualRank* current() { return current_; }
  // Each coroutine of a rank that the scheduler resumes calls it first, see Completed.
  static void set_current(VirtualRank* rank) {
    current_ = rank;
    RunningRank::set(rank == nullptr ? nullptr : rank->state_);
  }

  Rank& state() const { return *state_; }

  // Objects of MPI of that kind that the rank has made and that exist, see Object.
  int num_objects(ObjectKind kind) const { return num_objects_[static_cast<std::size_t>(kind)]; }
  void count_object(ObjectKind kind, int change) { num_objects_[static_cast<std::size_t>(kind)] += change; }
  // Those of them that move with the rank. Null while it is between two processes.
  RankObjects* objects() const { return objects_; }

  // Whether the scheduler will resume it.
  bool is_queued() const { return is_queued_; }

  // From the start of the job to its end.
  void set_scheduler(runtime::Scheduler* scheduler) { scheduler_ = scheduler; }

  // The rank runs in one of the next turns if it waits.
  void wake() {
    if (!waits_ || is_queued_) return;
    is_queued_ = true;
    scheduler_->post(this);
  }

  // Calls the function on the rank's own stack, if the rank has begun and waits. The function must not wait. REQUIRES: no rank runs.
  void visit(const std::function<void()>& function);

  // --- On the rank's own stack
  // Returns after a wake(). The caller looks whether what it waits for has happened.
  void wait();
  // Lets the other ranks that are ready run, and the PE poll the network.
  void yield();

 protected:
  // set_state() comes before the rank runs.
  VirtualRank() : runtime::Work(&VirtualRank::on_turn) {}
  void set_state(Rank* state) {
    state_ = state;
    if (current_ == this) RunningRank::set(state);
  }
  void set_objects(RankObjects* objects) { objects_ = objects; }

  // On the scheduler's stack: runs the rank until it waits or ends.
  void run();
  // On the scheduler's stack: switches to the rank's. Returns when the rank suspends.
  virtual void resume() = 0;
  // On the rank's own stack: switches back.
  virtual void suspend() = 0;

 private:
  void suspend_until_run();
  static void on_turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action);

  static inline VirtualRank* current_ = nullptr;

  Rank* state_ = nullptr;
  RankObjects* objects_ = nullptr;
  std::array<int, kNumObjectKinds> num_objects_{};
  runtime::Scheduler* scheduler_ = nullptr;
  const std::function<void()>* visitor_ = nullptr;  // runs instead of the rank
  bool waits_ = true;                               // at first for its begin
  bool has_begun_ = false;
  bool is_queued_ = false;
};

}  // namespace weft::mpi
