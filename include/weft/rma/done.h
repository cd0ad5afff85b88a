// Done and Value<T>: what operations on global memory return. Both can be over already, and then they cost nothing.
//
// A program awaits them, turns them into a future, gives them a callback, or drops them. An operation that is dropped
// continues, and its failure ends the job. An await of an operation that is over does not suspend, except every 256th one
// of a PE (Scheduler::spend_ready_await()).
//
// Threads: the PE's.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/future.h"
#include "weft/runtime/operation.h"

namespace weft::rma {

// The part that Done and Value have in common: the state of an operation in flight; null if it is over.
class Progressing {
 public:
  Progressing(runtime::Messenger& messenger, runtime::OperationState* state)
      : messenger_(&messenger), state_(state) {}
  Progressing(Progressing&& other) noexcept
      : messenger_(other.messenger_), state_(std::exchange(other.state_, nullptr)) {}
  Progressing& operator=(Progressing&& other) noexcept {
    std::swap(messenger_, other.messenger_);
    std::swap(state_, other.state_);
    return *this;
  }
  ~Progressing() {
    if (state_ != nullptr) [[unlikely]]
      state_->drop_handle();
  }

  bool is_done() const { return state_ == nullptr || state_->is_done(); }

 protected:
  // Most operations on mapped memory are over, so the work that resumes the coroutine is made when it suspends.
  struct ProgressingAwaiter {
    explicit ProgressingAwaiter(const Progressing& operation)
        : messenger(operation.messenger_), state(operation.state_) {}
    ProgressingAwaiter(const ProgressingAwaiter&) = delete;
    ProgressingAwaiter& operator=(const ProgressingAwaiter&) = delete;
    bool await_ready() const {
      return state == nullptr ? !messenger->spend_ready_await() : state->can_resume_at_once();
    }
    // Inline, as the destructor: each awaited operation pays for the calls.
    [[gnu::always_inline]] void await_suspend(std::coroutine_handle<> waiting) {
      runtime::ResumeWork& work = resuming.emplace();
      work.suspend(waiting, messenger->meter());
      if (state == nullptr) [[unlikely]] {
        messenger->post_for_next_turn(&work);
      } else {
        state->set_waiter(&work);
      }
    }
    // A frame that is destroyed while it waits must not be resumed.
    [[gnu::always_inline]] ~ProgressingAwaiter() {
      if (state != nullptr && !state->is_done()) state->forget_waiter();
    }
    void expect_success() const {
      if (state == nullptr) return;
      state->observe();
      if (state->status().failed()) base::throw_status(state->status());
    }
    runtime::Messenger* messenger;
    runtime::OperationState* state;
    std::optional<runtime::ResumeWork> resuming;
  };

  runtime::OperationState* take_state() { return std::exchange(state_, nullptr); }
  runtime::OperationState* state() const { return state_; }
  runtime::Messenger& messenger() const { return *messenger_; }

 private:
  runtime::Messenger* messenger_;
  runtime::OperationState* state_;
};

// An operation without a result. Awaiting it throws Error if the operation failed.
class [[nodiscard]] Done : public Progressing {
 public:
  explicit Done(runtime::Messenger& messenger, runtime::OperationState* state = nullptr)
      : Progressing(messenger, state) {}

  auto operator co_await() const {
    struct DoneAwaiter : ProgressingAwaiter {
      using ProgressingAwaiter::ProgressingAwaiter;
      void await_resume() const { expect_success(); }
    };
    return DoneAwaiter(*this);
  }
  // Drops it: nothing waits for the operation.
  void detach() && { const Done dropped(std::move(*this)); }
  runtime::Future<> as_future() && {
    runtime::Future<> future(messenger());
    if (state() == nullptr) {
      future.set();
    } else {
      std::move(*this).then([future](const base::Status& status) {
        if (status.failed()) {
          future.set_error(
              std::make_exception_ptr(base::Error(status.code(), std::string(status.message()))));
        } else {
          future.set();
        }
      });
    }
    return future;
  }
  // Calls `callback(Status)`: now if the operation is over and has succeeded, else from the scheduler.
  template <class Callback>
  void then(Callback callback) && {
    if (state() == nullptr) return callback(base::Status());
    runtime::Operation(take_state())
        .then([callback = std::move(callback)](const base::Status& status, std::size_t) mutable {
          callback(status);
        });
  }
  // For other languages: the handle's share of the state; null if the operation is over. Its size_bytes() means nothing.
  runtime::OperationState* release() && { return take_state(); }
};

// An operation whose result is a T. While it is in flight, the T lies in the extra bytes of its state.
template <class T>
class [[nodiscard]] Value : public Progressing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Value(runtime::Messenger& messenger, T value) : Progressing(messenger, nullptr), value_(value) {}
  Value(runtime::Messenger& messenger, runtime::OperationState* state)
    requires(!std::is_same_v<T, runtime::OperationState*>)
      : Progressing(messenger, state), value_() {}

  auto operator co_await() const {
    struct ValueAwaiter : ProgressingAwaiter {
      explicit ValueAwaiter(const Value& value) : ProgressingAwaiter(value), ready(value.value_) {}
      T await_resume() const {
        if (this->state == nullptr) return ready;
        this->expect_success();
        T result;
        std::memcpy(&result, this->state->extra(), sizeof result);
        return result;
      }
      T ready;
    };
    return ValueAwaiter(*this);
  }
  // The result, for code that does not await. REQUIRES: is_done(). Throws Error if the operation failed.
  T get() const {
    if (state() == nullptr) return value_;
    state()->observe();
    if (state()->status().failed()) base::throw_status(state()->status());
    T result;
    std::memcpy(&result, state()->extra(), sizeof result);
    return result;
  }
  void detach() && { const Value dropped(std::move(*this)); }
  // As Done::release(). The result will be the first bytes of the state's extra().
  runtime::OperationState* release() && { return take_state(); }
  runtime::Future<T> as_future() && {
    runtime::Future<T> future(messenger());
    if (state() == nullptr) {
      future.set(value_);
      return future;
    }
    runtime::OperationState* const kept = take_state();
    runtime::Operation(kept).then([future, kept](const base::Status& status, std::size_t) {
      if (status.failed()) {
        future.set_error(std::make_exception_ptr(base::Error(status.code(), std::string(status.message()))));
        return;
      }
      T result;
      std::memcpy(&result, kept->extra(), sizeof result);
      future.set(result);
    });
    return future;
  }

 private:
  T value_;
};

}  // namespace weft::rma
