// WaitingThreads: the threads of a process that wait in calls of MPI, with the level MPI_THREAD_MULTIPLE.
//
// One of them, the driver, runs the scheduler for all: it moves communication forward and wakes each thread whose condition has become
// true. The others sleep. A driver that is done wakes another thread, which drives on. Each waiting thread has given up the CallLock,
// except the driver, which passes it on when another thread wants it.
// Threads: all, with the CallLock. wait() and yield() of the idle hook are called by the driver.
#pragma once

#include <cstdint>

#include "weft/runtime/runtime.h"

#include "models/mpi/threads/call_lock.h"

namespace weft::mpi {

class WaitingThreads final : private runtime::IdleHook {
 public:
  // The runtime must outlive it.
  explicit WaitingThreads(runtime::Runtime& runtime);
  ~WaitingThreads() override;
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  // Returns true when `done` does, with the lock held since. Other threads may call `done` meanwhile, with the lock. Returns false if
  // the runtime has failed.
  bool wait_until(bool (*done)(void* context), void* context);
  // One turn, for calls that test.
  void progress();
  bool any() const { return first_ != nullptr; }

 private:
  struct Waiter;

  // --- runtime::IdleHook
  void before_sleep() override {}
  bool after_sleep() override { return true; }
  void wait(machine::Machine& machine, std::int64_t timeout_us) override;
  void yield() override;

  bool drive(Waiter& self);
  // Between two turns of the driver. Returns whether its condition is true.
  bool between_turns(Waiter& self);
  void sleep(Waiter& self);
  void wake_those_done();
  void wake_next_driver();
  // A turn may call a function of the program, which gives up the lock. No other thread begins a turn meanwhile.
  void wait_for_turn();
  void begin_turn();
  void end_turn() { is_in_turn_ = false; }
  bool is_turn_of_caller() const;

  runtime::Runtime& runtime_;
  CallLock& lock_ = CallLock::of_process();
  Waiter* first_ = nullptr;  // the thread that waits for the longest time
  Waiter* driver_ = nullptr;
  bool is_in_turn_ = false;
  pthread_t turn_of_{};  // while is_in_turn_
};

}  // namespace weft::mpi
