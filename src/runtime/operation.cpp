#include "weft/runtime/operation.h"

#include "base/format.h"

namespace weft::runtime {

OperationState* OperationState::create(Messenger& messenger, std::size_t extra_bytes) {
  void* block = messenger.pool().allocate_mostly<kSmallBlockBytes>(sizeof(OperationState) + extra_bytes);
  return new (block) OperationState(messenger, extra_bytes);
}

void OperationState::complete(base::Status status, std::size_t size_bytes) {
  finish(std::move(status), size_bytes);
}

void OperationState::finish(base::Status status, std::size_t size_bytes) {
  done_ = true;
  if (!status.ok()) [[unlikely]]
    status_ = std::move(status);
  size_bytes_ = size_bytes;
  if (finisher_ != nullptr) finisher_(this, finisher_context_);
  if (waiter_ != nullptr) {
    messenger_.post(waiter_);
  } else {
    can_resume_at_once_ = !messenger_.spend_ready_await();
  }
  if (handle_dropped_) release();
}

// With finish() in it: each message that is awaited pays for the call.
[[gnu::flatten]] void OperationState::on_complete(base::Completion* completion, base::Status status,
                                                  std::size_t size_bytes) {
  static_cast<OperationState*>(completion)->finish(std::move(status), size_bytes);
}

void OperationState::set_waiter(Work* work) {
  if (waiter_ != nullptr) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "an operation is awaited a second time; await it once, or make it a future with as_future()");
  }
  waiter_ = work;
  if (done_) messenger_.post_for_next_turn(work);
}

void OperationState::drop_handle() {
  handle_dropped_ = true;
  if (done_) release();
}

void OperationState::report_unobserved() {
  if (messenger_.exiting()) return;
  messenger_.fail(base::format("PE {}: an operation that is not awaited failed: {}", messenger_.pe(),
                               status_.to_string()));
}

// A failure takes another function, so that this one keeps no values.
void OperationState::release() {
  if (status_.failed()) [[unlikely]]
    return release_failed();
  give_back();
}

void OperationState::release_failed() {
  if (!observed_) report_unobserved();
  give_back();
}

inline void OperationState::give_back() {
  BlockPool& pool = messenger_.pool();
  const std::size_t size_bytes = sizeof(OperationState) + extra_bytes_;
  this->~OperationState();
  pool.deallocate_mostly<kSmallBlockBytes>(this, size_bytes);
}

void Operation::state_then(OperationState* state, Work* work) {
  if (state->is_done()) {
    state->messenger().post(work);
  } else {
    state->set_waiter(work);
  }
}

Future<std::size_t> Operation::as_future() && {
  Future<std::size_t> future(state_->messenger());
  std::move(*this).then([future](const base::Status& status, std::size_t size_bytes) {
    if (status.failed()) {
      future.set_error(base::error_of(status));
    } else {
      future.set(size_bytes);
    }
  });
  return future;
}

OperationState* report_sending(Messenger& messenger, Message& message) {
  OperationState* state = OperationState::create(messenger);
  state->started(base::Status::pending(), 0);
  message.report_sending(state->completion());
  return state;
}

}  // namespace weft::runtime
