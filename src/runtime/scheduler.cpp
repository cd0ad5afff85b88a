// The turn of a PE: progress, queued work, timers, and what an idle PE does.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "weft/runtime/runtime.h"

#include "machine/machine.h"
#include "memory/memory.h"
#include "runtime/parts.h"

namespace weft::runtime {

namespace {

// Work done between two looks at the network.
constexpr int kBatch = 64;
// Looks at the network by an idle PE before it looks at everything else again.
constexpr int kPollsPerTurn = 16;
// An idle PE yields its processor for this long before it goes to sleep: waking costs about 20 us, a yield
// about 1.
constexpr std::chrono::microseconds kYieldTime{100};
// A device may take seconds, and the hook's threads are not to wait as long. Longer than the 5 ms after which
// Python hands the interpreter over: in quicker succession rests only wake those threads, time and again.
constexpr std::chrono::microseconds kRestInterval{10'000};

}  // namespace

bool Runtime::run_queue() {
  try {
    for (int i = 0; i < kBatch; ++i) {
      Work* work = queue_.pop();
      if (work == nullptr) return i > 0;
      // While the job ends, user work is dropped; the runtime's own messages still go through.
      work->function(work, *this, exiting_ ? WorkAction::kDrop : WorkAction::kRun);
    }
  } catch (...) {  // what entry methods throw was caught before
    fail_unawaited(std::current_exception(), fmt::format("a callback on PE {}", pe_));
  }
  return true;
}

bool Runtime::step() {
  bool busy = machine_.progress();
  if (memory_.has_pending()) busy |= memory_.progress();
  if (!pollers_.empty()) [[unlikely]]
    busy |= run_pollers();
  busy |= run_queue();
  if (parts_->mail_arrived.load(std::memory_order_acquire)) busy |= read_mail();
  if (!parts_->timers.empty()) busy |= expire_timers();
  if (parts_->termination.begun()) {
    exiting_ = true;
    exit_code_ = parts_->termination.code();
    stopped_ |= parts_->termination.advance(outstanding_sends_ > 0);
  }
  return busy;
}

int Runtime::run() {
  while (!stopped_) {
    if (step()) {
      idle_rounds_ = 0;
    } else if (!stopped_) {
      idle();
    }
  }
  return failure_.empty() ? exit_code_ : 1;
}

void Runtime::rest(auto sleep) {
  if (idle_hook_ != nullptr) idle_hook_->before_sleep();
  sleep();
  if (idle_hook_ != nullptr && !idle_hook_->after_sleep()) fail("interrupted");
}

void Runtime::idle() {
  // Looking at the network alone finds a message some 10 ns sooner than whole turns do, and what a device or
  // a poller waits for later.
  const bool network_alone = pollers_.empty() && !memory_.has_pending();
  const int polls = std::min(network_alone ? kPollsPerTurn : 1, parts_->spin_rounds - idle_rounds_);
  for (int i = 0; i < polls; ++i) {
    if (!machine_.progress()) continue;
    idle_rounds_ = 0;
    run_queue();
    return;
  }
  auto now = Parts::Clock::now();
  if (polls > 0) {
    idle_rounds_ += polls;
    if (idle_rounds_ < parts_->spin_rounds) return;
    parts_->idle_since = now;
  }
  const bool waits_for_device = machine_.needs_polling() || memory_.has_pending();
  if (now - parts_->idle_since < (waits_for_device ? kRestInterval : kYieldTime)) {
    sched_yield();
    return;
  }
  if (waits_for_device) {
    rest([] { sched_yield(); });
    parts_->idle_since = Parts::Clock::now();
    return;
  }
  if (!pollers_.empty() && !may_sleep()) return;
  std::int64_t timeout_us = -1;
  if (!parts_->timers.empty()) {
    auto left = std::chrono::ceil<std::chrono::microseconds>(parts_->timers.top().when - now);
    timeout_us = left.count() > 0 ? left.count() : 0;
  }
  rest([&] { machine_.wait(timeout_us); });
}

bool Runtime::run_pollers() {
  bool any = false;
  for (std::size_t i = 0; i < pollers_.size();) {
    Poller* const poller = pollers_[i];
    any |= poller->poll();
    if (i < pollers_.size() && pollers_[i] == poller) ++i;  // else it has taken itself off
  }
  return any;
}

bool Runtime::may_sleep() {
  return std::ranges::all_of(pollers_, [](Poller* poller) { return poller->before_sleep(); });
}

void Runtime::post_from_any_thread(std::function<void()> function) {
  {
    std::lock_guard lock(parts_->mailbox_mutex);
    parts_->mailbox.push_back(std::move(function));
  }
  parts_->mail_arrived.store(true, std::memory_order_release);
  machine_.wake();
}

bool Runtime::read_mail() {
  std::vector<std::function<void()>> mail;
  {
    std::lock_guard lock(parts_->mailbox_mutex);
    mail.swap(parts_->mailbox);
    parts_->mail_arrived.store(false, std::memory_order_relaxed);
  }
  try {
    for (auto& function : mail) {
      if (!exiting_) function();
    }
  } catch (...) {
    fail_unawaited(std::current_exception(),
                   fmt::format("a function posted by another thread to PE {}", pe_));
  }
  return !mail.empty();
}

void Runtime::post_after(double seconds, Work* work) {
  constexpr double kLongestSeconds = 1e9;  // what a clock can add; no job lives longer
  double bounded = seconds > 0 ? std::min(seconds, kLongestSeconds) : 0;
  auto delay = std::chrono::duration_cast<Parts::Clock::duration>(std::chrono::duration<double>(bounded));
  parts_->timers.push({Parts::Clock::now() + delay, parts_->next_timer++, work});
}

bool Runtime::expire_timers() {
  auto now = Parts::Clock::now();
  bool any = false;
  while (!parts_->timers.empty() && parts_->timers.top().when <= now) {
    queue_.push(parts_->timers.top().work);
    parts_->timers.pop();
    any = true;
  }
  return any;
}

Future<> Runtime::sleep(double seconds) {
  struct Alarm : Work {
    explicit Alarm(Future<> future_in) : Work(&Alarm::call), future(std::move(future_in)) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      std::unique_ptr<Alarm> alarm(static_cast<Alarm*>(self));
      if (action == WorkAction::kRun) alarm->future.set();
    }
    Future<> future;
  };
  Future<> future(*this);
  post_after(seconds, new Alarm(future));
  return future;
}

void Runtime::drop_queue() {
  while (Work* work = queue_.pop()) work->function(work, *this, WorkAction::kDrop);
  while (!parts_->timers.empty()) {
    Work* work = parts_->timers.top().work;
    parts_->timers.pop();
    work->function(work, *this, WorkAction::kDrop);
  }
  std::vector<std::function<void()>> mail;  // goes without the lock: what it holds may post again
  std::lock_guard lock(parts_->mailbox_mutex);
  mail.swap(parts_->mailbox);
}

// --- Ending

void Runtime::exit(int code) { parts_->termination.request(code); }

void Runtime::fail(std::string message) {
  if (failure_.empty()) failure_ = std::move(message);
  exiting_ = true;
  stopped_ = true;
}

// --- Coroutines

void Runtime::start_detached(DetachedTask* task, std::coroutine_handle<> coroutine) {
  task->link(detached_);
  coroutine.resume();
}

void Runtime::spawn(Task<> task, std::string where) {
  struct Spawned final : DetachedTask {
    Spawned(Runtime& runtime_in, Task<>::Handle handle_in, std::string where_in)
        : runtime(runtime_in), handle(handle_in), where(std::move(where_in)) {}
    void finished() noexcept override {
      if (handle.promise().error) runtime.fail_unawaited(handle.promise().error, where);
      abandon();
    }
    void abandon() noexcept override {
      handle.destroy();
      delete this;
    }
    Runtime& runtime;
    Task<>::Handle handle;
    std::string where;
  };
  Task<>::Handle handle = task.release();
  auto* spawned = new Spawned(*this, handle, std::move(where));
  handle.promise().detached = spawned;
  start_detached(spawned, handle);
}

}  // namespace weft::runtime
