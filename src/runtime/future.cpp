#include "weft/runtime/future.h"

#include <utility>

#include "base/format.h"
#include "runtime/message/handlers.h"
#include "runtime/save_refusal.h"

namespace weft::runtime {

void FutureState::expect_unset() const {
  if (set_) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "a future was set a second time; each is set exactly once");
  }
}

bool FutureState::accept() {
  if (!collects_) {
    expect_unset();
    return true;
  }
  if (values_left_ == 0) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      "a future of several values was set more often than it has values");
  }
  --values_left_;
  return !set_;
}

void FutureState::when_ready(Work* work) {
  if (remote_.id != 0 && !is_mirror_) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("this future belongs to PE {}; only that PE can wait for it", remote_.pe));
  }
  if (ready_) {
    messenger_.post(work);
    return;
  }
  work->next = nullptr;
  if (waiters_ == nullptr) {
    waiters_ = work;
  } else {
    last_waiter_->next = work;
    if ((table_keeps_ & kKeepsPlaces) != 0) [[unlikely]]
      note_place(work);
  }
  last_waiter_ = work;
}

void throw_taken() {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      "the value of this future is move-only and was already taken: get() or co_await it once, and "
      "keep the value");
}

void FutureState::forget(Work* work) {
  constexpr int kMostSteps = 32;    // of a walk in place of the table
  if (messenger_.closed()) return;  // see mark_ready()
  if ((table_keeps_ & kKeepsPlaces) != 0) return forget_of_many(work);
  Work* previous = nullptr;
  Work* at = waiters_;
  for (int steps = 0; at != nullptr && at != work; previous = std::exchange(at, at->next)) {
    if (++steps == kMostSteps) return forget_of_many(work);
  }
  if (at == work) unlink(previous, work);
}

void FutureState::unlink(Work* previous, const Work* work) {
  (previous == nullptr ? waiters_ : previous->next) = work->next;
  if (last_waiter_ == work) last_waiter_ = previous;
}

void FutureState::set_error(std::exception_ptr error) {
  if (remote_.id != 0) {
    send_future_message(messenger_, remote_.pe,
                        pack_future_error(messenger_, {remote_.id, FutureSetHeader::kError}, error));
    return;
  }
  if (accept()) end_with(std::move(error));
}

void FutureState::end_hold() {
  held_ = false;
  if (set_) mark_ready();
}

void FutureState::replace_by_error(std::exception_ptr error) {
  error_ = std::move(error);
  set_ = true;
}

void SaveRefusal::refuse(const std::string& what) const {
  throw base::Error(base::StatusCode::kInvalidArgument, base::format("{} holds {}", holder_, what));
}

void send_future_message(Messenger& messenger, std::uint32_t pe, MessagePtr message) {
  messenger.send(static_cast<int>(pe), std::move(message));
}

MessagePtr pack_future_error(Messenger& messenger, FutureSetHeader header, const std::exception_ptr& error) {
  Pup sizer = Pup::sizer(&messenger.runtime());
  sizer | header;
  pack_error(sizer, error);
  MessagePtr message = Message::create(messenger, kFutureSetHandler, sizer.offset_bytes());
  Pup packer = Pup::packer(message->payload(), message->payload_bytes(), &messenger.runtime());
  packer | header;
  pack_error(packer, error);
  return message;
}

void FutureHandle::pup(Pup& p) {
  p | future.pe | future.id;
  if (future.id == 0) return;
  std::uint8_t which = static_cast<std::uint8_t>(kind);
  p | which;
  if (which > static_cast<std::uint8_t>(Kind::kOutcome)) p.refuse("a future of no known kind");
  if (p.is_unpacking()) kind = static_cast<Kind>(which);
  if (kind == Kind::kLinked) p | link.pe | link.id;
}

void pack_future(Pup& p, FutureState* state) {
  const FutureHandle handle = state == nullptr ? FutureHandle() : state->handle();
  p | handle;
  if (handle.kind == FutureHandle::Kind::kOutcome) state->pack_outcome(p);
}

void FutureState::unpack_outcome(Pup& p) {
  bool failed = false;
  p | failed;
  if (!failed) return pup_value(p);
  end_with(unpack_error(p));
}

void FutureState::end_with(std::exception_ptr error) {
  error_ = std::move(error);
  mark_ready();
}

void FutureState::send_outcome(std::uint32_t to_pe, FutureAddress future) {
  Pup sizer = Pup::sizer(&runtime());
  sizer | future.pe | future.id;
  pack_outcome(sizer);
  MessagePtr message = Message::create(messenger_, kFutureCopyHandler, sizer.offset_bytes());
  Pup p = Pup::packer(message->payload(), message->payload_bytes(), &runtime());
  p | future.pe | future.id;
  pack_outcome(p);
  messenger_.send(static_cast<int>(to_pe), std::move(message));
}

}  // namespace weft::runtime
