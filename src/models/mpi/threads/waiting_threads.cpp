#include "models/mpi/threads/waiting_threads.h"

#include <sched.h>

#include <atomic>

namespace weft::mpi {

// On the stack of its thread, in the list while it waits. A thread that sleeps is out of the list only after it has got the lock, so a
// thread with the lock may use each waiter of the list.
struct WaitingThreads::Waiter {
  bool (*done)(void* context);
  void* context;
  Waiter* next = nullptr;
  // 1: it is awake, or will be. An int: futexes wait for those without a detour.
  std::atomic<int> is_awake = 1;

  bool is_done() const { return done(context); }
  void wake() {
    is_awake.store(1, std::memory_order_release);
    is_awake.notify_one();
  }
};

WaitingThreads::WaitingThreads(runtime::Runtime& runtime) : runtime_(runtime) {
  lock_.set_polls(!runtime.shares_processor());
  runtime_.set_idle_hook(this);
}

WaitingThreads::~WaitingThreads() { runtime_.set_idle_hook(nullptr); }

// --- Waiting

bool WaitingThreads::wait_until(bool (*done)(void* context), void* context) {
  // Such a function calls MPI, which the standard does not allow for operators.
  if (is_turn_of_caller()) return runtime_.run_until(done, context);
  Waiter self{done, context};
  Waiter** place = &first_;
  while (*place != nullptr) place = &(*place)->next;
  *place = &self;
  while (!self.is_done() && !runtime_.stopped()) {
    if (driver_ != nullptr) {
      sleep(self);
    } else if (!drive(self)) {
      break;
    }
  }
  for (place = &first_; *place != &self;) place = &(*place)->next;
  *place = self.next;
  if (driver_ == nullptr) wake_next_driver();
  return !runtime_.stopped() || self.is_done();
}

void WaitingThreads::sleep(Waiter& self) {
  self.is_awake.store(0, std::memory_order_relaxed);
  const int holds = lock_.release();
  self.is_awake.wait(0, std::memory_order_acquire);
  lock_.take_back(holds);
}

void WaitingThreads::wake_those_done() {
  for (Waiter* one = first_; one != nullptr; one = one->next) {
    if (one->is_awake.load(std::memory_order_relaxed) == 0 && one->is_done()) one->wake();
  }
}

// A thread that is awake already looks for a driver itself.
void WaitingThreads::wake_next_driver() {
  for (const Waiter* one = first_; one != nullptr; one = one->next) {
    if (one->is_awake.load(std::memory_order_relaxed) != 0) return;
  }
  if (first_ != nullptr) first_->wake();
}

// --- Turns

bool WaitingThreads::drive(Waiter& self) {
  struct Driving {
    WaitingThreads& all;
    Waiter& self;
  } driving{*this, self};
  driver_ = &self;
  const bool is_done = runtime_.run_until(
      [](void* context) {
        const auto& [all, waiter] = *static_cast<Driving*>(context);
        return all.between_turns(waiter);
      },
      &driving);
  if (is_turn_of_caller()) end_turn();
  driver_ = nullptr;
  return is_done;
}

bool WaitingThreads::between_turns(Waiter& self) {
  if (is_turn_of_caller()) end_turn();
  if (lock_.is_wanted()) lock_.pass_on();
  wait_for_turn();
  // After other threads have had the lock: the turn may sleep.
  wake_those_done();
  if (self.is_done()) return true;
  begin_turn();
  return false;
}

void WaitingThreads::wait_for_turn() {
  while (is_in_turn_) lock_.pass_on();
}

void WaitingThreads::begin_turn() {
  is_in_turn_ = true;
  turn_of_ = pthread_self();
}

bool WaitingThreads::is_turn_of_caller() const {
  return is_in_turn_ && pthread_equal(turn_of_, pthread_self()) != 0;
}

void WaitingThreads::progress() {
  if (is_in_turn_) return is_turn_of_caller() ? void(runtime_.step()) : lock_.pass_on();
  begin_turn();
  const bool is_busy = runtime_.step();
  end_turn();
  // The driver sees after its next turn what this one has done. It is awake: each call wakes it.
  if (!is_busy && runtime_.shares_processor()) yield();
}

// --- The idle hook

void WaitingThreads::wait(machine::Machine& machine, std::int64_t timeout_us) {
  lock_.wait_in(machine, timeout_us);
}

void WaitingThreads::yield() {
  const bool was_in_turn = is_turn_of_caller();
  if (was_in_turn) end_turn();
  const int holds = lock_.release();
  sched_yield();
  lock_.take_back(holds);
  if (!was_in_turn) return;
  wait_for_turn();
  begin_turn();
}

}  // namespace weft::mpi
