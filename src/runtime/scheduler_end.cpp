// How a scheduler's work ends: what fails it, what is dropped, and what is closed.
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/remote_error.h"
#include "weft/runtime/scheduler.h"

#include "base/format.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "runtime/losses/losses.h"

namespace weft::runtime {

void Scheduler::drop_queue() {
  while (Work* work = queue_.pop()) work->function(work, runtime_, WorkAction::kDrop);
  while (!timers_.empty()) {
    Work* work = timers_.begin()->second;
    timers_.erase(timers_.begin());
    work->function(work, runtime_, WorkAction::kDrop);
  }
  std::vector<Mail> mail;  // destroyed without the lock, because it may post again
  std::lock_guard lock(mailbox_mutex_);
  mail.swap(mailbox_);
}

void Scheduler::fail(std::string message, int code) {
  if (pthread_equal(pthread_self(), thread_) == 0) {
    post_end_from_any_thread(
        [this, code, why = std::move(message)]() mutable { fail(std::move(why), code); });
    return;
  }
  if (failure_.empty()) {
    failure_ = std::move(message);
    exit_code_ = code;
  }
  exiting_ = true;
  stopped_ = true;
}

void Scheduler::fail_unawaited(const std::exception_ptr& error, const std::string& where) {
  try {
    std::rethrow_exception(as_remote_error(error, where));
  } catch (const base::RemoteError& remote) {
    fail(base::format("PE {}: an exception without an awaiting caller left {}\n{}: {}\n{}", pe_, where,
                      remote.type(), remote.remote_message(), remote.traceback()));
  }
}

void Scheduler::fail_sent(int pe, const base::Status& status) {
  if (exiting_ || losses_->explain(pe, status)) return;
  fail(pe < 0 ? base::format("a message could not be sent: {}", status.to_string())
              : base::format("a message could not be sent to PE {}: {}", pe, status.to_string()));
}

void Scheduler::close_layers() {
  losses_->close();
  closed_ = true;
  exiting_ = true;
  memory_.end_steps();  // before anything that streams use is unmapped
  machine_.close();
  memory_.close();
}

void Scheduler::abandon_tasks() {
  while (detached_ != nullptr) {
    detached_->abandon();
    // A destructor in that frame may have posted work for other tasks. Drop it before those are abandoned.
    drop_queue();
  }
}

}  // namespace weft::runtime
