#include "models/mpi/threads/waiting_threads.h"

#include <sched.h>

#include <atomic>
#include <utility>

namespace weft::mpi {

namespace {

// A thread polls for as long as a sleep and its end take: 16 us.
constexpr int kSleepFactor = 8;

// With one processor a thread that polls delays those that it waits for.
bool has_several_processors() {
  cpu_set_t own;
  return sched_getaffinity(0, sizeof own, &own) != 0 ||
         CPU_COUNT(&own) > 1;  // an error: more than 1024 in the system
}

}  // namespace

// On the stack of its thread, in the list while it waits. A thread that sleeps leaves the list only after it has got the lock, so a
// thread with the lock may use each waiter of the list.
struct WaitingThreads::Waiter {
  bool (*done)(void* context);
  void* context;
  pthread_t thread = pthread_self();
  bool runs_program = false;  // in a turn that the thread drove
  Waiter* next = nullptr;
  // 1: it is awake, or will be. An int: futexes wait for those without a detour.
  std::atomic<int> is_awake = 1;

  bool is_done() const { return done(context); }
  void wake() {
    is_awake.store(1, std::memory_order_release);
    is_awake.notify_one();
  }
};

WaitingThreads::WaitingThreads(runtime::Runtime& runtime) : runtime_(runtime), activity_(runtime) {
  lock_.set_polls(!runtime.shares_processor() && has_several_processors());
  runtime_.set_idle_hook(this);
  of_process_ = this;
}

WaitingThreads::~WaitingThreads() {
  of_process_ = nullptr;
  runtime_.set_idle_hook(nullptr);
}

// --- Waiting

bool WaitingThreads::wait_until(bool (*done)(void* context), void* context) {
  Waiter self{done, context};
  Waiter** place = &first_;
  while (*place != nullptr) place = &(*place)->next;
  *place = &self;
  while (!self.is_done() && !runtime_.stopped()) driver_ == nullptr ? drive(self) : sleep(self);
  for (place = &first_; *place != &self;) place = &(*place)->next;
  *place = self.next;
  if (driver_ == nullptr) wake_next_driver();
  return self.is_done();
}

void WaitingThreads::sleep(Waiter& self) {
  self.is_awake.store(0, std::memory_order_relaxed);
  const int holds = lock_.release();
  // No call of the system if another thread ends the wait soon.
  lock_.poll_for(kSleepFactor, [&] { return self.is_awake.load(std::memory_order_relaxed) != 0; });
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
    if (one->is_awake.load(std::memory_order_relaxed) != 0 && !one->runs_program) return;
  }
  for (Waiter* one = first_; one != nullptr; one = one->next) {
    if (one->is_awake.load(std::memory_order_relaxed) == 0) return one->wake();
  }
}

// --- Driving

void WaitingThreads::drive(Waiter& self) {
  struct Driving {
    WaitingThreads& all;
    Waiter& self;
  } driving{*this, self};
  driver_ = &self;
  const auto ends = [](void* context) {
    const auto& [all, waiter] = *static_cast<Driving*>(context);
    return all.between_turns(waiter);
  };
  static_cast<void>(runtime_.run_until(ends, &driving));
  if (driver_ == &self) driver_ = nullptr;
}

bool WaitingThreads::between_turns(Waiter& self) {
  self.runs_program = false;
  let_others_call();
  // After other threads have had the lock: the next turn may sleep.
  wake_those_done();
  return self.is_done() || driver_ != &self;
}

void WaitingThreads::program_begins() {
  if (driver_ == nullptr || pthread_equal(driver_->thread, pthread_self()) == 0) return;
  std::exchange(driver_, nullptr)->runs_program = true;
  wake_next_driver();
}

// --- The idle hook

void WaitingThreads::wait(machine::Machine& machine, std::int64_t timeout_us) {
  lock_.wait_in(machine, timeout_us);
  let_others_call();  // not every wait is of a driver
}

void WaitingThreads::yield() {
  const int holds = lock_.release();
  sched_yield();
  lock_.take_back(holds);
}

}  // namespace weft::mpi
