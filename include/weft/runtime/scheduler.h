// The scheduler of one PE: a queue of work, timers, coroutines, and progress of the machine and the memory
// layer.
//
// Runtime derives from Messenger, which derives from Scheduler. Threads: the PE's thread calls everything.
// Any thread may call post_from_any_thread(), post_end_from_any_thread(), fail() and fail_unawaited(). The PE's thread is the one that
// calls run(); before run(), it is the one that made the scheduler.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/block_pool.h"
#include "weft/runtime/metering/device_meter.h"
#include "weft/runtime/metering/processor_share.h"
#include "weft/runtime/metering/turn_meter.h"
#include "weft/runtime/metering/yield_times.h"
#include "weft/runtime/observer.h"
#include "weft/runtime/task.h"
#include "weft/runtime/work.h"
#include "weft/runtime/work_meter.h"

namespace weft::machine {
class Machine;
class TransferObserver;
}  // namespace weft::machine
namespace weft::memory {
class Memory;
}

namespace weft::runtime {

// Called around every sleep of an idle PE. Before it sleeps, a PE that has been idle for a while yields its processor, also inside these
// calls; while it polls a device, every 10 ms. Python uses it to let its other threads run.
struct IdleHook {
  virtual ~IdleHook() = default;
  virtual void before_sleep() = 0;
  // Returning false ends the job as interrupted.
  virtual bool after_sleep() = 0;
  // The sleep itself, and each yield of an idle PE. Overridden for a lock that other threads want meanwhile.
  virtual void wait(machine::Machine& machine, std::int64_t timeout_us);
  virtual void yield();
};

// Looks on while the PE is idle, see HangWatch.
struct IdleWatch {
  virtual ~IdleWatch() = default;
  // Called in front of each sleep of an idle PE. Returns after how many microseconds it is to be called again at the latest; -1: no limit; 0: it
  // has given the PE something to do.
  virtual std::int64_t look(std::chrono::steady_clock::duration idle_for) = 0;
};

// Decides when a PE may stop, see Scheduler::end_with().
struct Ending {
  virtual ~Ending() = default;
  // Called in every turn. Returns whether the PE may stop.
  virtual bool may_stop() = 0;
};

class HostGroups;
class Losses;

class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  int pe() const { return pe_; }
  int num_pes() const { return num_pes_; }
  // Null if hosts make no difference to the trees of this job.
  const HostGroups* host_groups() const { return host_groups_.get(); }
  machine::Machine& machine() { return machine_; }
  memory::Memory& memory() { return memory_; }
  BlockPool& pool() { return pool_; }
  // The runtime that derives from this scheduler. Each Work and the context of each Pup get it.
  Runtime& runtime() { return runtime_; }
  // The PEs that this job has lost and outlives.
  Losses& losses() { return *losses_; }
  const Losses& losses() const { return *losses_; }
  // This PE's place for memory of `kind`: its own device, if the kind has devices.
  memory::Place own_place(memory::Kind kind) const;

  // Null for none. `observer` must live until another one, or null, is set.
  void set_observer(Observer* observer);
  Observer* observer() const { return observer_; }
  // The observer if it observes communication.
  Observer* message_observer() const { return message_observer_; }
  // Numbers for observers: 24 bits of PE, 40 of a counter.
  std::uint64_t next_trace_id() {
    return static_cast<std::uint64_t>(pe_) << 40 | (++last_trace_ & ((std::uint64_t{1} << 40) - 1));
  }

  // The times of objects that take part in load balancing.
  WorkMeter& meter() { return meter_; }
  DeviceMeter& device_meter() { return device_meter_; }
  // How the PE spends its time.
  TurnMeter& turn_meter() { return turn_meter_; }

  // --- Work
  void post(Work* work) { queue_.push(work); }
  void post(Work* work, std::int32_t priority) { queue_.push(work, priority); }
  // Any thread. `function` runs on the PE's thread, unless the job ends before; a sleeping PE wakes up.
  void post_from_any_thread(std::function<void()> function) { post_mail({std::move(function), false}); }
  // Any thread. As post_from_any_thread(), for a function that ends the PE: it runs also while the job ends. Calls announce_end().
  void post_end_from_any_thread(std::function<void()> function) {
    announce_end();
    post_mail({std::move(function), true});
  }
  // Posts `work` behind all queued work and ends the current batch. The PE therefore polls the network,
  // and queues the messages that have arrived, before `work` runs.
  void post_for_next_turn(Work* work) {
    queue_.push(work);
    batch_left_ = std::min(batch_left_, 1);
  }
  // Calls the function on the PE's thread after ask_for_report().
  void set_report_function(std::function<void()> function) { report_function_ = std::move(function); }
  // Any thread, and a signal handler.
  void ask_for_report();
  // Any thread: calls the function of set_urgent_function() once on the PE's thread, also while a call of the PE waits.
  void ask_urgently();
  // Any thread: the launcher has lost PE `pe`, see Losses.
  void tell_loss(int pe, std::string why);
  // `function` runs no code of the program, and calls no progress().
  void set_urgent_function(std::function<void()> function) { urgent_function_ = std::move(function); }
  // Names a timer of post_after().
  struct TimerId {
    std::chrono::steady_clock::time_point when;
    std::uint64_t sequence = 0;
    bool operator<(const TimerId& other) const {
      return when != other.when ? when < other.when : sequence < other.sequence;
    }
  };
  // Posts `work` after `seconds`.
  TimerId post_after(double seconds, Work* work);
  // Takes a timer back: its work is not called. Returns false if the time has passed and the work is posted.
  bool cancel_timer(const TimerId& timer) { return timers_.erase(timer) != 0; }
  bool queue_empty() const { return queue_.empty(); }
  // At most `most`. Its cost grows with the number.
  std::size_t num_queued(std::size_t most = SIZE_MAX) const { return queue_.size(most); }
  // Counts an await whose result is ready. Returns true for every kReadyAwaitsPerTurn-th one: that coroutine
  // must suspend for a turn, so that a loop of such awaits does not keep the PE from its other work.
  bool spend_ready_await() {
    if (--ready_awaits_left_ > 0) [[likely]]
      return false;
    ready_awaits_left_ = kReadyAwaitsPerTurn;
    return true;
  }
  static constexpr int kReadyAwaitsPerTurn = 256;

  // Runs until exit or fail() has taken effect on this PE. Returns the job's exit code.
  int run();
  // As run(), but returns also when `done` returns true. For models whose programs wait outside of the scheduler: MPI's
  // blocking calls. Returns whether `done` did. REQUIRES: the scheduler does not run the caller.
  bool run_until(bool (*done)(void* context), void* context);
  // As run_until(), for what another process of the host changes without a message: each turn asks `done`, and the PE does not sleep
  // long. It counts as idle meanwhile.
  bool poll_until(bool (*done)(void* context), void* context);
  // One turn: progress, some queued work, timers. Returns whether anything was done. For tests and embedders.
  bool step();
  // For calls of a program that tests in a loop: one turn. After several polls that have done nothing, other threads of the host may run:
  // one of them may send what the program waits for.
  void poll() {
    if (step()) {
      vain_polls_ = 0;
    } else if (shares_processor_ || ++vain_polls_ >= kVainPolls) {
      yield_after_polls();
    }
  }
  // For a long computation in an entry method, a coroutine or a callback: moves communication forward.
  // Transfers in flight continue, and arriving messages are queued. No handler, entry method, callback or
  // coroutine runs before the caller returns or suspends, and timers wait. Returns whether work is queued: a
  // coroutine may then `co_await yield_now(runtime)`. Does nothing if the scheduler does not run the caller.
  bool progress();
  // For a call that must wait for other PEs: progress() until `done` returns true or must_end(). An idle PE waits as in
  // run(). Signal handlers of the program may run meanwhile; may_progress() is false in them. REQUIRES: not inside progress().
  void progress_until(bool (*done)(void* context), void* context);
  // Whether progress() does anything: the scheduler is running the caller, and the machine is not. The machine calls a
  // program's code, for example, when the last reference to a Python array that it has sent goes.
  bool may_progress() const { return batch_left_ > 0 && !is_in_progress_; }
  // Whether this host's PEs are more than its processors, so that a PE that polls keeps another one from working.
  bool shares_processor() const { return shares_processor_; }
  bool stopped() const { return stopped_; }
  void set_idle_hook(IdleHook* hook) { idle_hook_ = hook; }
  // Null for none. Called inside progress(), and while a call waits and nothing arrives: sends what urgent handlers have left to be sent,
  // which otherwise waits for a turn. Returns whether it has done anything. It runs no code of the program, and calls no progress().
  using ProgressHook = bool (*)(void* context);
  void set_progress_hook(ProgressHook hook, void* context) {
    progress_hook_ = hook;
    progress_hook_context_ = context;
  }
  // Null for none. `watch` must live until another one, or null, is set.
  void set_idle_watch(IdleWatch* watch) { idle_watch_ = watch; }
  // For how long the PE has had nothing to do; 0 if it polls still. REQUIRES: called in the first turn after that, or before.
  std::chrono::steady_clock::duration idle_for() const;
  // Whether progress_until() waits.
  bool waits_in_call() const { return idle_in_call_ != nullptr; }

  // --- Coroutines
  // Starts `task`; an exception that leaves it ends the job, naming `where`.
  void spawn(Task<> task, std::string where);
  // For models with a DetachedTask of their own: links `task` and starts `coroutine`.
  void start_detached(DetachedTask* task, std::coroutine_handle<> coroutine);
  // Abandons `task` when the runtime closes, unless it has ended by then.
  void list_pending(DetachedTask* task) { task->link(detached_); }
  // Adds what the suspended coroutines wait for, see DetachedTask::list_waits().
  void list_task_waits(WaitList& waits) const;

  // --- Ending
  // This PE cannot continue: run() returns `code`, failure() says why, and Job ends the other PEs. The first failure counts.
  // Any thread: a call on another thread than the PE's takes effect in the PE's next turn; a sleeping PE wakes up.
  void fail(std::string message, int code = 1);
  // As fail(), for an exception that no caller awaits. Any thread. `where` names chare and entry method.
  void fail_unawaited(const std::exception_ptr& error, const std::string& where);
  const std::string& failure() const { return failure_; }
  bool exiting() const { return exiting_; }
  bool closed() const { return closed_; }
  // Whether the job is ending or has failed: no user work is started any more.
  bool ending() const { return ending_ != nullptr || exiting_; }
  // Any thread: this PE will have to end, so no call waits any more. The caller posts what ends it.
  void announce_end() { interrupts_.fetch_or(kEndAnnounced, std::memory_order_relaxed); }
  // Whether a call that waits for other PEs may wait for ever.
  bool must_end() const {
    return ending() || (interrupts_.load(std::memory_order_relaxed) & kEndAnnounced) != 0;
  }
  // The job ends with `code`. From the end of this turn on, queued work is dropped, and the PE stops when
  // `ending` allows it.
  void end_with(int code, Ending* ending) {
    exit_code_ = code;
    ending_ = ending;
  }

  // --- Counters
  // For quiescence detection. Each thing counted as sent must be counted as processed once, on any PE.
  void count_sent(int count = 1) { sent_ += static_cast<std::uint64_t>(count); }
  void count_processed() { ++processed_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t processed() const { return processed_; }
  // Sends that the machine has not completed. A PE reports itself drained only when there are none.
  void send_started() { ++outstanding_sends_; }
  void send_ended() { --outstanding_sends_; }
  bool has_outstanding_sends() const { return outstanding_sends_ > 0; }
  // Calls fail() if `status`, of a message to `pe`, is a failure, unless the job ends or outlives the loss of that PE. `pe` < 0: unknown.
  void check_sent(int pe, const base::Status& status) {
    if (status.failed()) [[unlikely]]
      fail_sent(pe, status);
  }

 protected:
  // `runtime` is kept and not used. `local_pes` are on this host.
  Scheduler(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes,
            const ProcessorShare& share);
  ~Scheduler() = default;

  // Before the first message.
  void set_host_groups(std::shared_ptr<const HostGroups> groups) { host_groups_ = std::move(groups); }
  // The steps of closing, in this order. Ends all operations of the machine and the memory layer.
  void close_layers();
  // Drops queued work, timers and mail.
  void drop_queue();
  // Abandons suspended coroutines.
  void abandon_tasks();

 private:
  using Clock = std::chrono::steady_clock;

  // After so many polls in a row that have done nothing, one yields the processor: after about 5 us, in which a small message is answered.
  static constexpr int kVainPolls = 64;

  struct Mail {
    std::function<void()> function;
    bool ends_pe;  // it runs also while the job ends
  };

  bool run_queue();
  void post_mail(Mail mail);
  bool progress_once();
  bool call_progress_hook();
  [[gnu::cold, gnu::noinline]] void fail_sent(int pe, const base::Status& status);
  // Rare parts of a turn. They are out of line, so that a usual turn saves no registers for them.
  [[gnu::cold, gnu::noinline]] void end_noted_idle();
  [[gnu::cold, gnu::noinline]] bool measure_progress();
  [[gnu::cold, gnu::noinline]] void note_short_idle();
  void note_long_idle(Clock::time_point since);
  [[gnu::cold, gnu::noinline]] void fail_callback();
  [[gnu::noinline]] bool read_mail();
  [[gnu::noinline]] void answer_urgently();
  [[gnu::noinline]] bool expire_timers();
  void idle();
  // Returns for how long the PE may sleep, at most that long; 0: not at all. -1: for ever.
  std::int64_t ask_idle_watch(std::int64_t timeout_us, Clock::duration idle_for);
  void rest(auto sleep);
  [[gnu::noinline]] void yield_after_polls();
  void yield_processor(Clock::time_point now);
  void wait_in_machine(std::int64_t timeout_us);
  void leave_turn_to_threads();

  Runtime& runtime_;
  machine::Machine& machine_;
  memory::Memory& memory_;
  int pe_;
  int num_pes_;
  WorkQueue queue_;
  BlockPool pool_;
  std::uint64_t sent_ = 0;
  std::uint64_t processed_ = 0;
  std::uint64_t outstanding_sends_ = 0;
  bool exiting_ = false;
  // The most pieces of work that run between two polls of the network.
  static constexpr int kBatch = 64;
  // What a call that waits looks at, in one load.
  static constexpr std::uint8_t kEndAnnounced = 1;
  static constexpr std::uint8_t kAsked = 2;
  std::atomic<std::uint8_t> interrupts_ = 0;
  bool stopped_ = false;
  bool closed_ = false;
  int exit_code_ = 0;
  Observer* observer_ = nullptr;
  Observer* message_observer_ = nullptr;
  std::shared_ptr<machine::TransferObserver> transfer_reports_;  // to observer_
  bool is_idle_observed_ = false;
  bool is_idle_noted_ = false;  // the observer or turn_meter_ waits for the end of the idle time
  WorkMeter meter_;
  DeviceMeter device_meter_;
  TurnMeter turn_meter_;
  std::uint64_t last_trace_ = 0;
  int idle_rounds_ = 0;
  int vain_polls_ = 0;
  // How much queued work may still run before the next poll of the network; 0 if no queued work is running.
  int batch_left_ = 0;
  int ready_awaits_left_ = kReadyAwaitsPerTurn;
  bool shares_processor_ = false;
  bool is_in_progress_ = false;
  int spin_rounds_ = 0;
  Clock::duration yield_time_;
  Clock::duration awake_time_;  // from the first idle turn until it sleeps; not less than yield_time_
  Ending* ending_ = nullptr;
  IdleHook* idle_hook_ = nullptr;
  ProgressHook progress_hook_ = nullptr;
  void* progress_hook_context_ = nullptr;
  IdleWatch* idle_watch_ = nullptr;
  // Of progress_until(); null if it does not wait.
  struct IdleTime {
    int rounds = 0;
    Clock::time_point since;
  };
  const IdleTime* idle_in_call_ = nullptr;
  DetachedTask* detached_ = nullptr;
  std::string failure_;

  std::map<TimerId, Work*> timers_;
  std::uint64_t next_timer_ = 0;
  Clock::time_point idle_since_;
  Clock::time_point rested_at_;        // while it polls a device
  YieldTimes yield_times_;             // if no PEs share processors
  pthread_t thread_ = pthread_self();  // the PE's
  std::shared_ptr<const HostGroups> host_groups_;

  // Any thread fills it. The scheduler reads the flag first, so that it rarely takes the mutex.
  std::mutex mailbox_mutex_;
  std::vector<Mail> mailbox_;
  std::atomic<bool> mail_arrived_{false};
  std::atomic<bool> is_report_asked_{false};
  std::function<void()> report_function_;
  std::function<void()> urgent_function_;
  std::shared_ptr<Losses> losses_;
  bool serves_threads_ = false;  // mail has come since the PE was idle for long
};

// Awaitable: runs all other queued work of this PE, and polls the network, before the coroutine continues.
inline auto yield_now(Scheduler& scheduler) {
  struct YieldAwaiter : ResumeWork {
    explicit YieldAwaiter(Scheduler& scheduler_in) : scheduler(scheduler_in) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      suspend(waiting, scheduler.meter());
      scheduler.post_for_next_turn(this);
    }
    void await_resume() const {}
    Scheduler& scheduler;
  };
  return YieldAwaiter(scheduler);
}

}  // namespace weft::runtime
