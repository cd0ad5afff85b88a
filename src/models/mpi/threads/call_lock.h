// CallLock: the lock that a call of MPI holds in a process whose threads may call MPI at the same time (MPI_THREAD_MULTIPLE).
//
// Order: a thread that does not get the lock polls it for a short time and then sleeps in a queue. A release wakes the first thread of
// the queue, and threads that poll may take the lock before it. A thread that has been woken in vain is given the lock by the next
// release, so each thread gets it after a bounded number of others.
// A thread may hold the lock several times: functions of MPI call others. It gives up all its holds while it waits for other
// processes (WaitingThreads) and while a function of the program runs (ProgramRuns).
// Threads: all. No variable is thread_local: the library may be loaded late, and its threads are the program's.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace weft::machine {
class Machine;
}

namespace weft::mpi {

class CallLock {
 public:
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;

  // The lock of this process.
  static CallLock& of_process() { return lock_; }

  // Whether calls take the lock. They do so until MPI_Init has granted a thread level, because some functions may be called before it by
  // several threads.
  bool is_used() const { return is_used_.load(std::memory_order_relaxed); }
  // REQUIRES: one thread calls MPI.
  void use(bool is_used) { is_used_.store(is_used, std::memory_order_relaxed); }
  // Whether a thread that does not get the lock polls before it sleeps. Not if the processes of the host share processors.
  void set_polls(bool polls) { polls_.store(polls ? kPolls : 0, std::memory_order_relaxed); }
  // In a process that has been forked: its only thread uses MPI no more, and the lock may have been another thread's.
  void give_up_after_fork();

  void enter() {
    if (is_mine()) {
      ++holds_;
      return;
    }
    acquire(1);
  }
  // No effect if another thread, or none, holds the lock: after give_up_after_fork().
  void leave() {
    if (is_mine() && --holds_ == 0) unlock();
  }
  bool is_mine() const { return owner_.load(std::memory_order_relaxed) == pthread_self(); }

  // Gives up all holds of the caller and returns their number; 0 if the lock is not the caller's.
  [[nodiscard]] int release();
  // Takes the lock with so many holds; nothing for 0.
  void take_back(int holds) {
    if (holds > 0) acquire(holds);
  }
  // Whether other threads want the lock.
  bool is_wanted() const { return num_wanting_.load(std::memory_order_relaxed) != 0; }
  // Lets one of those threads have it. REQUIRES: is_mine().
  void pass_on();
  // Calls machine.wait(timeout_us) with the lock held. A thread that wants the lock ends the wait.
  void wait_in(machine::Machine& machine, std::int64_t timeout_us);

 private:
  struct Queued;  // a thread that sleeps

  constexpr CallLock() = default;

  // How often a thread looks whether the lock is free: for about 2 us, in which most calls end.
  static constexpr int kPolls = 50;

  bool try_take() {
    bool expected = false;
    return !is_held_.load(std::memory_order_relaxed) &&
           is_held_.compare_exchange_strong(expected, true, std::memory_order_seq_cst);
  }
  bool poll();
  void acquire(int holds);
  void wait_for_turn();
  void unlock();
  void wake_first();
  void enqueue(Queued& one, bool is_first);
  void remove(Queued& one);

  static CallLock lock_;

  std::atomic<bool> is_used_ = true;
  std::atomic<int> polls_ = 0;
  std::atomic<bool> is_held_ = false;
  std::atomic<int> num_queued_ = 0;
  std::atomic<pthread_t> owner_ = 0;
  int holds_ = 0;  // of the owner
  std::atomic<std::uint32_t> num_acquired_ = 0;
  // The following lie apart from what a call without others touches.
  alignas(64) std::atomic<int> num_wanting_ = 0;
  std::atomic<machine::Machine*> sleeps_in_ = nullptr;
  std::mutex queue_mutex_;
  Queued* first_ = nullptr;
};

}  // namespace weft::mpi
