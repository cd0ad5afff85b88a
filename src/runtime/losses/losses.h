// The PEs that a job has lost and outlives (`weft run --on-loss raise`).
//
// The launcher alone decides what a loss is. Its word comes by another thread (tell()), and takes effect in the PE's next turn: the
// machine ends all operations with the lost PE, then each hook is called. Until the word is here, operations that fail with kPeerFailed
// do not end the job, unless the word does not come.
//
// Threads: the PE's, except tell(). Invariant: each hook is called once for each lost PE, on the scheduler's thread, outside of
// progress(); it may send messages and start operations.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/status.h"
#include "weft/runtime/observer.h"
#include "weft/runtime/work.h"

#include "base/format.h"
#include "machine/machine.h"

namespace weft::runtime {

class Message;

class Losses {
 public:
  // What Losses need of their scheduler.
  struct Ways {
    std::function<void(double seconds, Work* work)> post_after;
    std::function<bool(std::string why)> fail;  // false: without effect, because the job ends
  };
  Losses(machine::Machine& machine, Ways ways)
      : machine_(machine), ways_(std::move(ways)), reasons_(static_cast<std::size_t>(machine.num_pes())) {}
  Losses(const Losses&) = delete;
  Losses& operator=(const Losses&) = delete;

  // Whether this job outlives losses. Constant from the first message on.
  bool are_survived() const { return are_survived_; }
  bool is_lost(int pe) const { return !reasons_[static_cast<std::size_t>(pe)].empty(); }
  int count() const { return static_cast<int>(in_order_.size()); }
  // The lost PEs, the first loss first.
  const std::vector<int>& in_order() const { return in_order_; }
  // A sentence without a full stop: "PE 2 (pid 17) was killed by signal 9 (SIGKILL)". Empty for a PE that is not lost.
  const std::string& why(int pe) const { return reasons_[static_cast<std::size_t>(pe)]; }
  // The lowest PE that is not lost.
  int first_living() const;
  // Whether an operation with `pe` (-1: not known) has failed because its peer is lost, or will be told to be: the job continues. If
  // the launcher tells of no such loss in time, the job ends.
  bool explain(int pe, const base::Status& status) {
    if (!are_survived_ || status.code() != base::StatusCode::kPeerFailed) return false;
    await_loss(pe, status);
    return true;
  }
  // `hook` is called for each PE that is lost from now on, in the order of the calls of on_loss(). It lives as long as the runtime.
  void on_loss(std::function<void(int pe)> hook) { hooks_.push_back(std::move(hook)); }

  // `watch` is asked for each message to a PE, before it is sent; false: it is not. One watch.
  void watch_sends(std::function<bool(int pe, Message& message)> watch) { watch_ = std::move(watch); }

  // --- For the job, the messenger and the scheduler
  // The observer of messages where the program has none: so all messages are asked for, and others jobs pay nothing. Null in a job that
  // does not outlive losses.
  Observer* observer() { return are_survived_ ? &no_observer_ : nullptr; }
  bool may_send(int pe, Message& message) const { return watch_ ? watch_(pe, message) : !is_lost(pe); }
  // Before the first message: this job outlives losses. Transfers take no ways past the transport, which would wait for the dead.
  void survive();
  // Any thread. The scheduler's tell_loss() calls it.
  void tell(int pe, std::string why);
  // `unblock` is called for each PE of tell() at once, also while a call waits. It runs no code of the program.
  void set_unblock(std::function<void(int pe)> unblock) { unblock_ = std::move(unblock); }
  // Inside a call that waits: see set_unblock().
  void unblock_told();
  // In a turn of the scheduler: ends the operations with the PEs of tell() and calls the hooks.
  void handle_told();
  // How long after a failure the launcher may tell of the loss, and after a loss an operation may fail whose peer is not known. For
  // tests.
  void set_patience_s(double seconds) { patience_s_ = seconds; }
  // No hook is called any more.
  void close() { hooks_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Told {
    int pe;
    std::string why;
    bool is_unblocked = false;
  };
  // A failure of an operation whose peer is not known to be lost.
  struct Unexplained : Work {
    Losses* losses = nullptr;
    int pe = -1;
    std::string what;
    Clock::time_point at;
  };
  std::vector<Told> take_told();
  // Whether the peer of an operation that has failed at that time is lost. For -1: whether any PE has been lost since then, or at most
  // patience_s_ before.
  bool is_explained(int pe, Clock::time_point at) const;
  [[gnu::cold]] void await_loss(int pe, const base::Status& status);
  void check(const Unexplained& failure);

  machine::Machine& machine_;
  const Ways ways_;
  bool are_survived_ = false;
  std::vector<std::string> reasons_;  // by PE
  std::vector<int> in_order_;
  Clock::time_point last_loss_ = Clock::time_point::min();
  std::list<std::function<void(int pe)>> hooks_;  // each stays where it is while it runs
  std::function<void(int pe)> unblock_;
  std::function<bool(int pe, Message& message)> watch_;
  Observer no_observer_;
  // At most one of each PE.
  std::list<Unexplained> unexplained_;
  // More than SILENCE_S of python/weft/launch/hosts/link.py. Of the end of a process of its own host the launcher knows at once.
  double patience_s_ = 20;
  std::mutex mutex_;  // of told_
  std::vector<Told> told_;
};

// The outcome of an operation that needs a lost PE. `what` is the operation: "a call of Ring[3].work".
inline base::Status lost_status(int pe, const std::string& what) {
  return {base::StatusCode::kPeerFailed, base::format("PE {} is lost, and {} needs it", pe, what)};
}
// It as an exception, a base::LostPe.
inline std::exception_ptr lost_error(int pe, const std::string& what) {
  return base::error_of(lost_status(pe, what));
}

}  // namespace weft::runtime
