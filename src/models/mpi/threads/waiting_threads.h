// WaitingThreads: the threads of a process that wait in calls of MPI, with the level MPI_THREAD_MULTIPLE.
//
// One of them, the driver, runs the scheduler for all: it moves communication forward and wakes each thread whose condition has become
// true. The others sleep. A driver that is done wakes another thread, which drives on. Each waiting thread has given up the CallLock,
// except the driver, which passes it on when another thread wants it.
// A call that tests makes a turn of its own. The driver sees after its next turn what that turn has done; it is awake, because a thread
// that wants the lock wakes it.
//
// A turn of the scheduler may call a function of the program: an operator, which runs from the queue and not inside of the machine. The
// function may need what a thread holds that waits in MPI: Python's interpreter. So another thread drives meanwhile.
// Threads: all, with the CallLock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/runtime/runtime.h"

#include "models/mpi/threads/call_lock.h"
#include "runtime/waits/program_threads.h"

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
  // A function of the program begins, without the lock.
  static void give_up_driving() {
    if (of_process_ != nullptr) of_process_->program_begins();
  }
  // Another thread that wants the lock gets it first. REQUIRES: the caller has the lock.
  void let_others_call() {
    if (lock_.is_wanted()) lock_.pass_on();
  }
  // The same at the end of this call, for calls that test in vain.
  void let_others_call_next() {
    if (lock_.is_wanted()) lock_.offer();
  }
  bool any() const { return first_ != nullptr; }

 private:
  struct Waiter;

  // --- runtime::IdleHook, of the driver and of calls that test
  void before_sleep() override {}
  bool after_sleep() override { return true; }
  void wait(machine::Machine& machine, std::int64_t timeout_us) override;
  void yield() override;

  // Runs the scheduler until the condition of the waiter is true, or another thread drives.
  void drive(Waiter& self);
  // Returns whether drive() ends.
  bool between_turns(Waiter& self);
  void sleep(Waiter& self);
  void wake_those_done();
  void wake_next_driver();
  void program_begins();

  // Those of the process, if its threads may wait. It has one rank.
  static inline WaitingThreads* of_process_ = nullptr;

  runtime::Runtime& runtime_;
  const runtime::ThreadActivity activity_;  // its threads may call MPI
  CallLock& lock_ = CallLock::of_process();
  Waiter* first_ = nullptr;  // the thread that waits for the longest time
  Waiter* driver_ = nullptr;
};

}  // namespace weft::mpi
