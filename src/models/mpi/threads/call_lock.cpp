#include "models/mpi/threads/call_lock.h"

#include <sched.h>

#include <algorithm>
#include <new>

#include "machine/machine.h"

namespace weft::mpi {

constinit CallLock CallLock::lock_;

struct CallLock::Queued {
  enum State : int { kSleeps, kMayTry, kHasLock };

  // Changes under the mutex of the queue. The thread sleeps until it is not kSleeps.
  std::atomic<int> state = kSleeps;
  bool was_woken_in_vain = false;
  Queued* next = nullptr;
};

void CallLock::give_up_after_fork() {
  this->~CallLock();
  new (this) CallLock;
  use(false);
}

// --- Holding

void CallLock::acquire(int holds) {
  if (num_due_.load(std::memory_order_relaxed) != 0 || !try_take()) [[unlikely]]
    wait_for_turn();
  owner_.store(pthread_self(), std::memory_order_relaxed);
  holds_ = holds;
  num_acquired_.store(num_acquired_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

int CallLock::release() {
  if (!is_mine()) return 0;
  const int holds = holds_;
  unlock();
  return holds;
}

void CallLock::unlock() {
  holds_ = 0;
  owner_.store(0, std::memory_order_relaxed);
  is_held_.store(false, std::memory_order_seq_cst);
  // A thread that queues looks at the lock after it has counted itself.
  if (num_queued_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
    wake_first();
}

void CallLock::pass_on() {
  const std::uint32_t before = num_acquired_.load(std::memory_order_relaxed);
  offer();
  const int holds = release();
  const auto is_taken = [&] { return num_acquired_.load(std::memory_order_relaxed) != before; };
  poll_for(1, is_taken);
  // A thread that has been woken needs a processor first.
  if (!is_taken()) sched_yield();
  take_back(holds);
}

void CallLock::wait_in(machine::Machine& machine, std::int64_t timeout_us) {
  sleeps_in_.store(&machine, std::memory_order_seq_cst);
  // A thread that wants the lock counts itself before it looks for a sleeper.
  if (num_wanting_.load(std::memory_order_seq_cst) == 0) machine.wait(timeout_us);
  sleeps_in_.store(nullptr, std::memory_order_relaxed);
}

// --- Waiting for the lock

bool CallLock::poll() {
  int pause = kShortestPause;
  for (int left = kTurn * polls_.load(std::memory_order_relaxed); left > 0 && !is_offered();) {
    if (num_due_.load(std::memory_order_relaxed) == 0 && try_take()) return true;
    left -= pause;
    for (int i = 0; i < pause && !is_offered(); ++i) pause_processor();
    pause = std::min(2 * pause, kLongestPause);
  }
  bool has_taken = false;
  num_due_.fetch_add(1, std::memory_order_relaxed);
  poll_for(1, [&] { return has_taken = try_take(); });
  num_due_.fetch_sub(1, std::memory_order_relaxed);
  return has_taken || try_take();
}

void CallLock::wait_for_turn() {
  num_wanting_.fetch_add(1, std::memory_order_seq_cst);
  if (machine::Machine* const sleeping = sleeps_in_.load(std::memory_order_seq_cst)) sleeping->wake();
  Queued self;
  bool has_slept = false;
  while (!poll()) {
    self.was_woken_in_vain = has_slept;
    enqueue(self, has_slept);
    // The lock may have become free before this thread was counted.
    if (try_take()) {
      remove(self);
      break;
    }
    self.state.wait(Queued::kSleeps, std::memory_order_acquire);
    has_slept = true;
    const std::lock_guard guard(queue_mutex_);  // wake_first() no longer uses `self`
    if (self.state.load(std::memory_order_relaxed) == Queued::kHasLock) break;
  }
  num_wanting_.fetch_sub(1, std::memory_order_relaxed);
  is_offered_.store(false, std::memory_order_relaxed);
}

void CallLock::enqueue(Queued& one, bool is_first) {
  const std::lock_guard guard(queue_mutex_);
  one.state.store(Queued::kSleeps, std::memory_order_relaxed);
  Queued** place = &first_;
  while (!is_first && *place != nullptr) place = &(*place)->next;
  one.next = *place;
  *place = &one;
  num_queued_.fetch_add(1, std::memory_order_seq_cst);
}

// The caller has the lock. Nothing happens if wake_first() has taken `one` out of the queue. It cannot have given it the lock as well.
void CallLock::remove(Queued& one) {
  const std::lock_guard guard(queue_mutex_);
  for (Queued** place = &first_; *place != nullptr; place = &(*place)->next) {
    if (*place != &one) continue;
    *place = one.next;
    num_queued_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

void CallLock::wake_first() {
  const std::lock_guard guard(queue_mutex_);
  Queued* const one = first_;
  if (one == nullptr) return;
  // It is given the lock before it runs. If another thread has taken the lock meanwhile, the release of that one comes here.
  if (one->was_woken_in_vain && !try_take()) return;
  first_ = one->next;
  num_queued_.fetch_sub(1, std::memory_order_relaxed);
  one->state.store(one->was_woken_in_vain ? Queued::kHasLock : Queued::kMayTry, std::memory_order_release);
  one->state.notify_one();
}

}  // namespace weft::mpi
