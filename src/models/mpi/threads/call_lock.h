// CallLock: the lock that a call of MPI holds in a process whose threads may call MPI at the same time (MPI_THREAD_MULTIPLE).
//
// Order: a thread that does not get the lock polls it, with pauses that grow. So the holder makes several calls while its data lie in
// the cache of its processor. When the thread has waited for long, or the holder has nothing to do, its turn is due: other threads leave
// it the lock for a short time. Then it sleeps in a queue. A release wakes the first thread of the queue, and threads that poll may take
// the lock before it. A thread that has been woken in vain is given the lock by the next release, so each thread gets it after a
// bounded number of others.
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
  // Asks at most `factor` x 50 times, 40 ns apart, whether `is_true()`. Not at all if threads do not poll.
  template <class IsTrue>
  void poll_for(int factor, const IsTrue& is_true) const {
    for (int i = factor * polls_.load(std::memory_order_relaxed); i > 0 && !is_true(); --i) pause_processor();
  }
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
  // A thread that wants the lock, and polls it, gets it before the caller takes it again.
  void offer() { is_offered_.store(true, std::memory_order_relaxed); }
  // Lets one of those threads have it. REQUIRES: is_mine().
  void pass_on();
  // Calls machine.wait(timeout_us) with the lock held. A thread that wants the lock ends the wait.
  void wait_in(machine::Machine& machine, std::int64_t timeout_us);

 private:
  struct Queued;  // a thread that sleeps

  constexpr CallLock() = default;

  // How often a thread whose turn is due looks whether the lock is free: for about 2 us, in which most calls end.
  static constexpr int kPolls = 50;
  // Before that it looks for so many times as long, with pauses of so many polls. Longer turns are better for two threads that send, and
  // worse for one that sends beside them. Messages of two threads to themselves, on two processors of a virtual EPYC: 1.4 M/s without
  // pauses, 1.7 with turns of 2 and pauses up to 32, 2.5 with 8 and 32, 2.9 with these, 4.6 with 32 and 256; of one thread 8.2.
  static constexpr int kTurn = 16;
  static constexpr int kShortestPause = 16;
  static constexpr int kLongestPause = 128;

  static void pause_processor() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  bool try_take() {
    bool expected = false;
    return !is_held_.load(std::memory_order_relaxed) &&
           is_held_.compare_exchange_strong(expected, true, std::memory_order_seq_cst);
  }
  bool is_offered() const { return is_offered_.load(std::memory_order_relaxed); }
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
  // What threads that poll read lies apart from what the holder writes.
  alignas(64) std::atomic<bool> is_held_ = false;
  std::atomic<int> num_due_ = 0;  // threads whose turn is due
  std::atomic<int> num_queued_ = 0;
  alignas(64) std::atomic<pthread_t> owner_ = 0;
  int holds_ = 0;  // of the owner
  std::atomic<std::uint32_t> num_acquired_ = 0;
  // The following lie apart from what a call without others touches.
  alignas(64) std::atomic<int> num_wanting_ = 0;
  std::atomic<bool> is_offered_ = false;  // the next turn is due at once
  std::atomic<machine::Machine*> sleeps_in_ = nullptr;
  std::mutex queue_mutex_;
  Queued* first_ = nullptr;
};

}  // namespace weft::mpi
