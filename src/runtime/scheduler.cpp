#include "weft/runtime/scheduler.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"
#include "weft/runtime/wait_list.h"

#include "base/format.h"
#include "machine/machine.h"
#include "machine/transfer_observer.h"
#include "memory/memory.h"
#include "runtime/losses/losses.h"

namespace weft::runtime {

namespace {

// An idle PE polls the network this often before it polls everything else again.
constexpr int kPollsPerTurn = 16;
// An idle PE yields its processor for this long before it goes to sleep, for each PE that shares the processor: waking
// costs about 20 us, a yield about 1, and each of the others must have had its turn, or all of them sleep and are woken
// in every round. An allreduce of 32 PEs on two processors took 661 us with 100 us, and 210 with 1000.
constexpr std::chrono::microseconds kYieldTime{100};
// An idle PE with a processor of its own goes on yielding it for so long, and lets other threads of the process run. A virtual processor that
// has slept may continue on another core of the host: without its data in the caches, or together with another one. On 16 of them PIC takes
// 1.18 times as long if its PEs sleep after 100 us (benchmarks/results/2026-11-29-pic).
constexpr std::chrono::microseconds kAwakeTime{20'000};
// The sleep in place of a yield that would take long, of a PE whose program polls.
constexpr std::chrono::microseconds kShortSleep{100};
// How often a program that polls in vain finds nothing between two such sleeps.
constexpr int kPollsBetweenSleeps = 8;
// How often a PE that polls a device runs the idle hook. It must exceed Python's 5 ms switch interval:
// shorter rests only wake the other threads.
constexpr std::chrono::microseconds kRestInterval{10'000};

// An idle time that is longer behind the polls is measured as a whole. Its end costs a read of the clock, and PEs that share processors wait
// for messages for some microseconds each.
constexpr std::chrono::microseconds kLongIdle{50};

// How long an idle PE leaves the interpreter to other threads that send it work: enough for one of them to wake and to take it. Twice
// the time that waking costs.
constexpr std::chrono::microseconds kThreadsTurn{40};

// The longest sleep of a call that waits. It does not look at the mail of other threads, which may end the job.
constexpr std::chrono::microseconds kLongestRest{100'000};

// Rounds without work before an idle PE starts to yield its processor: enough to await a reply of a few
// microseconds, and fewer if PEs share processors (see "Waiting" in src/runtime/README.md). On several hosts a
// round asks the kernel for TCP's messages, which takes 0.3 us and more, in place of 10 ns.
constexpr int kSpinRounds = 2000;
constexpr int kSpinRoundsOversubscribed = 100;
constexpr int kSpinRoundsNetwork = 100;

int spin_rounds(bool shares_processor, bool has_other_hosts) {
  if (shares_processor) return kSpinRoundsOversubscribed;
  return has_other_hosts ? kSpinRoundsNetwork : kSpinRounds;
}

// Translates the machine's transfer events to the observer's.
class TransferReports final : public machine::TransferObserver {
 public:
  explicit TransferReports(Observer& observer) : observer_(observer) {}
  bool observes_active_messages() const override { return observer_.observes_active_messages(); }
  void transfer_began(const machine::TransferEvent& event) override {
    observer_.transfer_began(translated(event));
  }
  void transfer_ended(const machine::TransferEvent& event, bool succeeded) override {
    observer_.transfer_ended(translated(event), succeeded);
  }

 private:
  static TransferEvent translated(const machine::TransferEvent& event) {
    return {event.number, machine::transfer_type_name(event.type), machine::transfer_path_name(event.path),
            event.kind, event.size_bytes};
  }

  Observer& observer_;
};

}  // namespace

void IdleHook::wait(machine::Machine& machine, std::int64_t timeout_us) { machine.wait(timeout_us); }

void IdleHook::yield() { sched_yield(); }

Scheduler::Scheduler(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes,
                     const ProcessorShare& share)
    : runtime_(runtime),
      machine_(machine),
      memory_(memory),
      pe_(machine.pe()),
      num_pes_(machine.num_pes()),
      shares_processor_(share.is_shared()),
      spin_rounds_(spin_rounds(shares_processor_, local_pes < machine.num_pes())),
      yield_time_(kYieldTime * ((share.num_pes + share.num_processors - 1) / share.num_processors)),
      awake_time_(shares_processor_ || num_pes_ == 1 ? yield_time_ : kAwakeTime),
      losses_(std::make_shared<Losses>(
          machine,
          Losses::Ways{.post_after = [this](double seconds, Work* work) { post_after(seconds, work); },
                       .fail =
                           [this](std::string why) {
                             if (ending()) return false;
                             fail(std::move(why));
                             return true;
                           }})) {}

memory::Place Scheduler::own_place(memory::Kind kind) const { return memory_.default_place(kind); }

// --- Turns

bool Scheduler::run_queue() {
  Work* work = queue_.pop();
  if (work == nullptr) return false;
  if (is_idle_noted_) [[unlikely]]
    end_noted_idle();
  batch_left_ = kBatch;
  try {
    do {
      // While the job ends, user work is dropped; the runtime's own messages still go through.
      work->function(work, runtime_, exiting_ ? WorkAction::kDrop : WorkAction::kRun);
    } while (--batch_left_ > 0 && (work = queue_.pop()) != nullptr);
  } catch (...) {  // exceptions of entry methods were caught before
    fail_callback();
  }
  batch_left_ = 0;
  return true;
}

void Scheduler::fail_callback() {
  fail_unawaited(std::current_exception(), base::format("a callback on PE {}", pe_));
}

void Scheduler::set_observer(Observer* observer) {
  if (is_idle_noted_) end_noted_idle();
  observer_ = observer;
  const bool observes = observer != nullptr && observer->observes_communication();
  message_observer_ = observes ? observer : losses_->observer();
  auto reports = observes ? std::make_shared<TransferReports>(*observer) : nullptr;
  machine_.set_transfer_observer(reports.get());
  transfer_reports_ = std::move(reports);
}

void Scheduler::end_noted_idle() {
  is_idle_noted_ = false;
  if (std::exchange(is_idle_observed_, false)) observer_->idle_ended();
  if (turn_meter_.is_idle()) turn_meter_.end_idle(Clock::now());
}

void Scheduler::note_short_idle() {
  is_idle_noted_ = true;
  turn_meter_.begin_idle(Clock::now());
}

void Scheduler::note_long_idle(Clock::time_point since) {
  is_idle_noted_ |= turn_meter_.begin_long_idle(since);
}

// An additional one, in front of the turn's own.
bool Scheduler::measure_progress() {
  const auto begin = Clock::now();
  const bool busy = progress_once();
  turn_meter_.turn_measured(begin, Clock::now(), idle_rounds_ == 0 && (busy || !queue_.empty()));
  return busy;
}

namespace {

// Raises a flag for as long as it lives.
struct Nesting {
  explicit Nesting(bool& flag_in) : flag(flag_in) { flag = true; }
  ~Nesting() { flag = false; }
  bool& flag;
};

}  // namespace

bool Scheduler::progress() {
  if (may_progress()) {
    const Nesting nesting(is_in_progress_);
    progress_once();
    call_progress_hook();
  }
  return !queue_.empty();
}

bool Scheduler::call_progress_hook() {
  if (progress_hook_ == nullptr) [[likely]]
    return false;
  try {
    return progress_hook_(progress_hook_context_);
  } catch (...) {
    fail_callback();
    return true;
  }
}

bool Scheduler::progress_once() {
  bool busy = machine_.progress();
  if (memory_.has_pending()) busy |= memory_.progress();
  return busy;
}

void Scheduler::progress_until(bool (*done)(void* context), void* context) {
  const Nesting nesting(is_in_progress_);
  IdleTime idle;
  const IdleTime* const outer = std::exchange(idle_in_call_, &idle);
  while (!done(context)) {
    if (ending() || interrupts_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      if (must_end()) break;
      answer_urgently();
    }
    if (progress_once() || call_progress_hook()) {
      idle.rounds = 0;
      if (is_idle_noted_) [[unlikely]]
        end_noted_idle();
    } else if (++idle.rounds == spin_rounds_) {
      idle.since = Clock::now();
    } else if (idle.rounds > spin_rounds_) {
      const auto now = Clock::now();
      const auto idle_time = now - idle.since;
      if (idle_time >= kLongIdle) note_long_idle(idle.since);
      if (idle_time < yield_time_) {
        yield_processor(now);
      } else if (machine_.needs_polling() || memory_.has_pending()) {
        if (idle_time < kRestInterval) {
          yield_processor(now);
        } else {
          rest([&] { yield_processor(now); });
          idle.since = Clock::now();
        }
      } else if (idle_time < awake_time_ && !yield_times_.are_long(now)) {
        rest([&] { yield_processor(now); });
      } else if (const std::int64_t us = ask_idle_watch(kLongestRest.count(), idle_time); us != 0) {
        turn_meter_.before_sleep(now);
        rest([this, us] { wait_in_machine(us); });
      }
    }
  }
  if (is_idle_noted_) [[unlikely]]
    end_noted_idle();
  idle_in_call_ = outer;
}

Scheduler::Clock::duration Scheduler::idle_for() const {
  const IdleTime idle = idle_in_call_ != nullptr ? *idle_in_call_ : IdleTime{idle_rounds_, idle_since_};
  return idle.rounds < spin_rounds_ ? Clock::duration::zero() : Clock::now() - idle.since;
}

std::int64_t Scheduler::ask_idle_watch(std::int64_t timeout_us, Clock::duration idle_for) {
  if (idle_watch_ == nullptr) return timeout_us;
  const std::int64_t look_us = idle_watch_->look(idle_for);
  if (look_us < 0) return timeout_us;
  return timeout_us < 0 ? look_us : std::min(look_us, timeout_us);
}

void Scheduler::list_task_waits(WaitList& waits) const {
  for (const DetachedTask* task = detached_; task != nullptr; task = task->next()) task->list_waits(waits);
}

bool Scheduler::step() {
  bool busy = turn_meter_.is_turn_measured() && measure_progress();
  busy |= machine_.progress();
  if (memory_.has_pending()) busy |= memory_.progress();
  busy |= run_queue();
  if (mail_arrived_.load(std::memory_order_acquire)) [[unlikely]]
    busy |= read_mail();
  if (!timers_.empty()) [[unlikely]]
    busy |= expire_timers();
  if (ending_ != nullptr) [[unlikely]] {
    exiting_ = true;
    stopped_ |= ending_->may_stop();
  }
  if (observer_ != nullptr && !busy && !is_idle_observed_) [[unlikely]] {
    is_idle_observed_ = is_idle_noted_ = true;
    observer_->idle_began();
  }
  return busy;
}

int Scheduler::run() {
  thread_ = pthread_self();
  while (!stopped_) {
    if (step()) {
      idle_rounds_ = 0;
    } else if (!stopped_) {
      idle();
    }
  }
  // A later exit() may have changed the code of a failure.
  return failure_.empty() ? exit_code_ : std::max(exit_code_, 1);
}

bool Scheduler::run_until(bool (*done)(void* context), void* context) {
  thread_ = pthread_self();
  idle_rounds_ = 0;
  while (!done(context)) {
    if (stopped_) return false;
    if (step()) {
      idle_rounds_ = 0;
    } else if (!stopped_) {
      idle();
    }
  }
  if (is_idle_noted_) [[unlikely]]
    end_noted_idle();  // the program goes on
  return true;
}

bool Scheduler::poll_until(bool (*done)(void* context), void* context) {
  thread_ = pthread_self();
  idle_rounds_ = 0;
  while (!done(context)) {
    if (stopped_) return false;
    if (step()) {
      vain_polls_ = 0;
      idle_rounds_ = 0;
    } else if (shares_processor_ || ++vain_polls_ >= kVainPolls) {
      yield_after_polls();
      const auto now = Clock::now();
      if (idle_rounds_ == 0) {
        idle_rounds_ = spin_rounds_;
        idle_since_ = now;
      }
      ask_idle_watch(-1, now - idle_since_);
    }
  }
  idle_rounds_ = 0;
  if (is_idle_noted_) [[unlikely]]
    end_noted_idle();
  return true;
}

void Scheduler::rest(auto sleep) {
  if (idle_hook_ != nullptr) idle_hook_->before_sleep();
  sleep();
  if (idle_hook_ != nullptr && !idle_hook_->after_sleep()) fail("interrupted");
}

// If PEs share processors, a long yield may be the work of another PE, and says nothing of other programs.
void Scheduler::yield_processor(Clock::time_point now) {
  // A message ends the sleep, and the end of work on a device does not.
  if (yield_times_.are_long(now) && !machine_.needs_polling() && !memory_.has_pending())
    return wait_in_machine(kShortSleep.count());
  idle_hook_ == nullptr ? static_cast<void>(sched_yield()) : idle_hook_->yield();
  if (!shares_processor_) yield_times_.note(now, Clock::now());
}

void Scheduler::yield_after_polls() {
  const auto now = Clock::now();
  vain_polls_ = yield_times_.are_long(now) ? kVainPolls - kPollsBetweenSleeps : 0;
  yield_processor(now);
}

void Scheduler::wait_in_machine(std::int64_t timeout_us) {
  idle_hook_ == nullptr ? machine_.wait(timeout_us) : idle_hook_->wait(machine_, timeout_us);
}

// The other threads of the process need what the idle hook holds, Python's interpreter, to take what the PE has done for them.
void Scheduler::leave_turn_to_threads() {
  rest([this] {
    const auto end = Clock::now() + kThreadsTurn;
    do sched_yield();
    while (!mail_arrived_.load(std::memory_order_relaxed) && Clock::now() < end);
  });
}

void Scheduler::idle() {
  if (serves_threads_ && idle_rounds_ < spin_rounds_)
      [[unlikely]] {  // it polls no longer with the interpreter in its hands
    idle_rounds_ = spin_rounds_;
    idle_since_ = Clock::now();
  }
  if (idle_rounds_ == 0 && turn_meter_.is_idle_measured()) [[unlikely]]
    note_short_idle();
  // Polling the machine alone finds a message about 10 ns sooner than whole turns do. It does not see the end
  // of device work, so a PE with pending copies makes whole turns.
  const bool network_alone = !memory_.has_pending();
  const int polls = std::min(network_alone ? kPollsPerTurn : 1, spin_rounds_ - idle_rounds_);
  for (int i = 0; i < polls; ++i) {
    if (!machine_.progress()) continue;
    run_queue();
    idle_rounds_ = 0;
    return;
  }
  // Reading the clock takes as long as several polls, so a PE that polls does not.
  if (polls > 0) {
    idle_rounds_ += polls;
    if (idle_rounds_ < spin_rounds_) return;
    idle_since_ = Clock::now();
  }
  const auto now = Clock::now();
  if (now - idle_since_ >= kLongIdle) note_long_idle(idle_since_);
  const bool waits_for_device = machine_.needs_polling() || memory_.has_pending();
  const auto since = waits_for_device ? std::max(idle_since_, rested_at_) : idle_since_;
  if (now - since < (waits_for_device ? kRestInterval : yield_time_)) {
    serves_threads_ ? leave_turn_to_threads() : yield_processor(now);
    return;
  }
  serves_threads_ = false;
  if (waits_for_device) {
    rest([&] { yield_processor(now); });
    rested_at_ = Clock::now();
    if (memory_.awaits_words_alone()) ask_idle_watch(-1, now - idle_since_);
    return;
  }
  if (!queue_.empty()) return;  // the end of the job may have queued a message without a busy turn
  if (now - idle_since_ < awake_time_ && !yield_times_.are_long(now))
    return rest([&] { yield_processor(now); });
  std::int64_t timeout_us = -1;
  if (!timers_.empty()) {
    auto left = std::chrono::ceil<std::chrono::microseconds>(timers_.begin()->first.when - now);
    timeout_us = left.count() > 0 ? left.count() : 0;
  }
  timeout_us = ask_idle_watch(timeout_us, now - idle_since_);
  if (timeout_us == 0) return;
  note_long_idle(idle_since_);
  turn_meter_.before_sleep(now);
  rest([&] { wait_in_machine(timeout_us); });
}

// --- Coroutines

void Scheduler::start_detached(DetachedTask* task, std::coroutine_handle<> coroutine) {
  task->link(detached_);
  coroutine.resume();
}

void Scheduler::spawn(Task<> task, std::string where) {
  struct Spawned final : DetachedTask {
    Spawned(Scheduler& scheduler_in, Task<>::Handle handle_in, std::string where_in)
        : scheduler(scheduler_in), handle(handle_in), where(std::move(where_in)) {}
    bool is_main() const { return where.starts_with("main on PE"); }
    void finished() noexcept override {
      if (Observer* const observer = scheduler.observer(); observer != nullptr && is_main())
        observer->main_ended(this);
      if (handle.promise().error) scheduler.fail_unawaited(handle.promise().error, where);
      abandon();
    }
    void abandon() noexcept override {
      handle.destroy();
      delete this;
    }
    // Other tasks are parts of operations, which models list.
    void list_waits(WaitList& waits) const override {
      if (!is_main()) return;
      waits.add(Wait{.who = {{Party::kMains, static_cast<std::uint64_t>(scheduler.pe())}, where}});
    }
    Scheduler& scheduler;
    Task<>::Handle handle;
    std::string where;
  };
  Task<>::Handle handle = task.release();
  auto* spawned = new Spawned(*this, handle, std::move(where));
  handle.promise().detached = spawned;
  if (observer_ == nullptr || !spawned->is_main()) return start_detached(spawned, handle);
  observer_->main_began(spawned);
  const void* const outer = meter_.exchange_run(spawned);
  start_detached(spawned, handle);
  meter_.exchange_run(outer);
  if (observer_ != nullptr) observer_->entry_suspended(spawned);
}

}  // namespace weft::runtime
