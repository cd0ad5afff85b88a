// The scheduler of one PE: a queue of work, timers, coroutines, and progress of the machine and the memory
// layer.
//
// It is the lowest part of a Runtime, which derives from it through Messenger; everything else of the runtime
// is built on these two. Threads: everything is called by the PE's thread, except post_from_any_thread(),
// fail() and fail_unawaited(). The PE's thread is the one that calls run(), before that the one that made the
// scheduler.
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
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/block_pool.h"
#include "weft/runtime/observer.h"
#include "weft/runtime/task.h"
#include "weft/runtime/work.h"

namespace weft::machine {
class Machine;
class TransferObserver;
}  // namespace weft::machine
namespace weft::memory {
class Memory;
}

namespace weft::runtime {

// Called around every sleep of an idle PE, and now and then while it polls for a device, for instance to let
// other Python threads run.
struct IdleHook {
  virtual ~IdleHook() = default;
  virtual void before_sleep() = 0;
  // Returning false ends the job as interrupted.
  virtual bool after_sleep() = 0;
};

// What a PE has to do before it may stop, see Scheduler::end_with().
struct Ending {
  virtual ~Ending() = default;
  // Called in every turn. Returns whether the PE may stop.
  virtual bool may_stop() = 0;
};

class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  int pe() const { return pe_; }
  int num_pes() const { return num_pes_; }
  machine::Machine& machine() { return machine_; }
  memory::Memory& memory() { return memory_; }
  BlockPool& pool() { return pool_; }
  // The whole that this scheduler is a part of: what each Work, and the context of each Pup, is given.
  Runtime& runtime() { return runtime_; }
  // Where this PE has memory of that kind: its own device, where what comes from device memory lands.
  memory::Place own_place(memory::Kind kind) const;

  // Null for none. `observer` must outlive its use: set another, or null, before it goes.
  void set_observer(Observer* observer);
  Observer* observer() const { return observer_; }
  // The observer if it observes communication.
  Observer* message_observer() const { return message_observer_; }
  // Numbers for observers: 24 bits of PE, 40 of a counter.
  std::uint64_t next_trace_id() {
    return static_cast<std::uint64_t>(pe_) << 40 | (++last_trace_ & ((std::uint64_t{1} << 40) - 1));
  }

  // --- Work
  void post(Work* work) { queue_.push(work); }
  void post(Work* work, std::int32_t priority) { queue_.push(work, priority); }
  // Any thread: `function` runs on the PE's thread, a sleeping PE wakes up.
  void post_from_any_thread(std::function<void()> function);
  // Posts `work` behind everything that is queued, and lets the network have its turn before it runs: what
  // arrives meanwhile is queued before the next batch of work begins.
  void post_for_next_turn(Work* work) {
    queue_.push(work);
    batch_left_ = std::min(batch_left_, 1);
  }
  // Posts `work` after `seconds`.
  void post_after(double seconds, Work* work);
  bool queue_empty() const { return queue_.empty(); }
  // Counts an await that found its result ready. Returns whether the coroutine must suspend for a turn all
  // the same: every kReadyAwaitsPerTurn-th must, so that a loop of such awaits does not keep the PE from
  // everything else.
  bool spend_ready_await() {
    if (--ready_awaits_left_ > 0) [[likely]]
      return false;
    ready_awaits_left_ = kReadyAwaitsPerTurn;
    return true;
  }
  static constexpr int kReadyAwaitsPerTurn = 256;

  // Runs until exit or fail() took effect on this PE; the job's exit code.
  int run();
  // One turn: progress, some queued work, timers. Returns whether anything was done. For tests and embedders.
  bool step();
  // For a long computation in an entry method, a coroutine or a callback: moves communication forward.
  // Transfers in flight continue, and what arrives is queued. No handler, entry method, callback or coroutine
  // runs before the caller returns or suspends, and timers wait. Returns whether work is queued: a coroutine
  // may then `co_await yield_now(runtime)`. Does nothing when the scheduler is not running the caller.
  bool progress();
  bool stopped() const { return stopped_; }
  void set_idle_hook(IdleHook* hook) { idle_hook_ = hook; }

  // --- Coroutines
  // Starts `task`; an exception that leaves it ends the job, naming `where`.
  void spawn(Task<> task, std::string where);
  // For models that end a coroutine their own way: links and starts it.
  void start_detached(DetachedTask* task, std::coroutine_handle<> coroutine);
  // Has `task` abandoned when the runtime closes, unless it has ended by then.
  void list_pending(DetachedTask* task) { task->link(detached_); }

  // --- Ending
  // This PE cannot continue: run() returns 1 and failure() says why; Job then ends the other PEs. Any thread:
  // on another than the PE's it takes effect in the PE's next turn, and a sleeping PE wakes up.
  void fail(std::string message);
  // The same for an exception without an awaiting caller, on any thread. `where` names chare and entry method.
  void fail_unawaited(const std::exception_ptr& error, const std::string& where);
  const std::string& failure() const { return failure_; }
  bool exiting() const { return exiting_; }
  bool closed() const { return closed_; }
  // Whether the job ends, or has failed: no user work is started any more.
  bool ending() const { return ending_ != nullptr || exiting_; }
  // The job ends with `code`: from the end of this turn on queued work is dropped, and the PE stops when
  // `ending` says so.
  void end_with(int code, Ending* ending) {
    exit_code_ = code;
    ending_ = ending;
  }

  // --- Counters
  // Of quiescence detection: every counted thing that is sent must be processed once, on any PE.
  void count_sent() { ++sent_; }
  void count_processed() { ++processed_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t processed() const { return processed_; }
  // Sends that the machine has not completed; a PE does not report itself drained before they are.
  void send_started() { ++outstanding_sends_; }
  void send_ended() { --outstanding_sends_; }
  bool has_outstanding_sends() const { return outstanding_sends_ > 0; }
  // Fails when a message could not be sent, unless the job ends anyway. `pe` < 0: to a PE that is not known.
  void check_sent(int pe, const base::Status& status);

 protected:
  // `runtime` is kept and not used. `local_pes` share this host's processors.
  Scheduler(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes);
  ~Scheduler() = default;

  // The steps of closing, in this order. Ends what the machine and the memory layer have in flight.
  void close_layers();
  // Gives up queued work, timers and mail.
  void drop_queue();
  // Gives up suspended coroutines.
  void abandon_tasks();

 private:
  using Clock = std::chrono::steady_clock;
  struct Timer {
    Clock::time_point when;
    std::uint64_t sequence;
    Work* work;
    bool operator<(const Timer& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  bool run_queue();
  void end_observed_idle();
  bool read_mail();
  bool expire_timers();
  void idle();
  void rest(auto sleep);

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
  bool stopped_ = false;
  bool closed_ = false;
  int exit_code_ = 0;
  Observer* observer_ = nullptr;
  Observer* message_observer_ = nullptr;
  std::shared_ptr<machine::TransferObserver> transfer_reports_;  // to observer_
  bool is_idle_observed_ = false;
  std::uint64_t last_trace_ = 0;
  int idle_rounds_ = 0;
  // Queued work that may still run before the next look at the network; 0 when no queued work is running.
  int batch_left_ = 0;
  int ready_awaits_left_ = kReadyAwaitsPerTurn;
  int spin_rounds_ = 0;
  Ending* ending_ = nullptr;
  IdleHook* idle_hook_ = nullptr;
  DetachedTask* detached_ = nullptr;
  std::string failure_;

  std::priority_queue<Timer> timers_;
  std::uint64_t next_timer_ = 0;
  Clock::time_point idle_since_;
  pthread_t thread_ = pthread_self();  // the PE's

  // Filled by any thread; the flag keeps the mutex off the scheduler's path.
  std::mutex mailbox_mutex_;
  std::vector<std::function<void()>> mailbox_;
  std::atomic<bool> mail_arrived_{false};
};

// Awaitable: lets everything else that is queued on this PE run, and what arrives on the network, before the
// coroutine goes on.
inline auto yield_now(Scheduler& scheduler) {
  struct Awaiter : ResumeWork {
    explicit Awaiter(Scheduler& scheduler_in) : scheduler(scheduler_in) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      handle = waiting;
      scheduler.post_for_next_turn(this);
    }
    void await_resume() const {}
    Scheduler& scheduler;
  };
  return Awaiter(scheduler);
}

}  // namespace weft::runtime
