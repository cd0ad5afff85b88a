// A send or receive in flight. A program awaits it, gives it a callback, turns it into a future, or drops it.
// A dropped operation continues, and its failure ends the job.
//
// The handle and the machine share the state, which comes from the runtime's pool. Dropping the handle is
// therefore safe. Threads: one PE's thread.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/error.h"
#include "weft/base/status.h"
#include "weft/runtime/future.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/work.h"

namespace weft::runtime {

class OperationState final : private base::Completion {
 public:
  // A state with its extra bytes costs least up to this size.
  static constexpr std::size_t kSmallBlockBytes = 128;
  // extra() has room for `extra_bytes` of the caller, for instance a copy of the data.
  static OperationState* create(Messenger& messenger, std::size_t extra_bytes = 0);
  std::byte* extra() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* extra() const { return reinterpret_cast<const std::byte*>(this + 1); }
  std::size_t extra_bytes() const { return extra_bytes_; }

  // Pass completion() to a start function of the machine, and the status that it returns to started(). Inline, because
  // each message pays for the call.
  base::Completion* completion() { return this; }
  [[gnu::always_inline]] void started(base::Status status, std::size_t size_bytes) {
    if (!status.is_pending()) finish(std::move(status), size_bytes);
  }
  // Completes it without a machine. REQUIRES: started() was called with pending.
  void complete(base::Status status, std::size_t size_bytes);

  bool is_done() const { return done_; }
  const base::Status& status() const { return status_; }
  std::size_t size_bytes() const { return size_bytes_; }
  Messenger& messenger() const { return messenger_; }
  Runtime& runtime() const { return messenger_.runtime(); }

  // Posts `work` once, when the operation is done. If it is done already, `work` runs in the next turn.
  // REQUIRES: no other waiter.
  void set_waiter(Work* work);
  // Undoes set_waiter() for work that has not been posted.
  void forget_waiter() { waiter_ = nullptr; }
  // Whether it is done and a coroutine that awaits it need not suspend, see Scheduler::spend_ready_await().
  bool can_resume_at_once() const { return can_resume_at_once_; }
  // Called once when the operation is done, before the waiter is posted. It may change the outcome.
  using Finisher = void (*)(OperationState* self, void* context);
  void set_finisher(Finisher finisher, void* context) {
    finisher_ = finisher;
    finisher_context_ = context;
  }
  Finisher finisher() const { return finisher_; }
  void* finisher_context() const { return finisher_context_; }
  void set_outcome(base::Status status, std::size_t size_bytes) {
    status_ = std::move(status);
    size_bytes_ = size_bytes;
  }

  void drop_handle();
  void observe() { observed_ = true; }

 private:
  OperationState(Messenger& messenger, std::size_t extra_bytes)
      : base::Completion(&OperationState::on_complete), messenger_(messenger), extra_bytes_(extra_bytes) {}
  static void on_complete(base::Completion* completion, base::Status status, std::size_t size_bytes);
  void finish(base::Status status, std::size_t size_bytes);
  void release();
  [[gnu::cold, gnu::noinline]] void release_failed();
  void give_back();
  // Ends the job, because the operation has failed and its outcome was never read.
  [[gnu::cold, gnu::noinline]] void report_unobserved();

  Messenger& messenger_;
  std::size_t extra_bytes_;
  base::Status status_;
  std::size_t size_bytes_ = 0;
  Work* waiter_ = nullptr;
  Finisher finisher_ = nullptr;
  void* finisher_context_ = nullptr;
  bool done_ = false;
  bool can_resume_at_once_ = false;
  bool handle_dropped_ = false;
  bool observed_ = false;
};

class [[nodiscard]] Operation {
 public:
  // Takes the handle's share of `state`.
  explicit Operation(OperationState* state) : state_(state) {}
  Operation(Operation&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Operation& operator=(Operation&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Operation() {
    if (state_ != nullptr) state_->drop_handle();
  }

  bool is_done() const { return state_->is_done(); }
  // Gives the handle's share of the state to the caller, for the handles of other languages.
  OperationState* release() && { return std::exchange(state_, nullptr); }

  // Drops the handle. The operation continues, so the buffer must stay valid until it has completed.
  void detach() && { *this = Operation(nullptr); }

  // Returns the number of bytes moved; throws Error on failure.
  auto operator co_await() {
    struct OperationAwaiter : ResumeWork {
      explicit OperationAwaiter(OperationState* state_in) : state(state_in) {}
      bool await_ready() const { return state->can_resume_at_once(); }
      void await_suspend(std::coroutine_handle<> waiting) {
        suspend(waiting, state->messenger().meter());
        state->set_waiter(this);
      }
      // A frame that is destroyed while it waits must not be resumed.
      ~OperationAwaiter() {
        if (!state->is_done()) state->forget_waiter();
      }
      std::size_t await_resume() const {
        state->observe();
        if (state->status().failed()) base::throw_status(state->status());
        return state->size_bytes();
      }
      OperationState* state;
    };
    return OperationAwaiter(state_);
  }

  // A future of the number of bytes.
  Future<std::size_t> as_future() &&;

  // Calls `callback(Status, size_bytes)` from the scheduler when the operation is done.
  template <class Callback>
  void then(Callback callback) && {
    struct ThenWork : Work {
      ThenWork(OperationState* state_in, Callback callback_in)
          : Work(&ThenWork::call), state(state_in), callback(std::move(callback_in)) {}
      static void call(Work* self, Runtime&, WorkAction action) {
        std::unique_ptr<ThenWork> work(static_cast<ThenWork*>(self));
        Operation handle(work->state);  // released also if the callback throws
        work->state->observe();
        if (action == WorkAction::kRun) work->callback(work->state->status(), work->state->size_bytes());
      }
      OperationState* state;
      Callback callback;
    };
    OperationState* state = std::exchange(state_, nullptr);
    state_then(state, new ThenWork(state, std::move(callback)));
  }

 private:
  static void state_then(OperationState* state, Work* work);

  OperationState* state_;
};

// Calls `send`, which sends the message whose sending `sending` reports; null for none. Returns `sending`. If `send` throws,
// the exception is the only report.
template <class Send>
OperationState* send_reported(OperationState* sending, Send send) {
  try {
    send();
  } catch (...) {
    if (sending != nullptr) {
      sending->observe();
      sending->drop_handle();
    }
    throw;
  }
  return sending;
}

// An operation that completes when the attachments of `message` have been sent, see
// Message::report_sending(). The caller gets the handle's share.
OperationState* report_sending(Messenger& messenger, Message& message);

}  // namespace weft::runtime
