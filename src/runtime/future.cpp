#include "weft/runtime/future.h"

#include <utility>

#include "base/format.h"
#include "runtime/future_refusal.h"

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

void FutureState::mark_ready() {
  set_ = true;
  if (held_) [[unlikely]]
    return;
  ready_ = true;
  // The waiting frames and callbacks are being destroyed, in any order, so none of them may be posted.
  if (messenger_.closed()) waiters_ = nullptr;
  while (waiters_ != nullptr) {
    Work* work = waiters_;
    waiters_ = work->next;
    messenger_.post(work);
  }
}

void FutureState::when_ready(Work* work) {
  if (remote_.id != 0) {
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
  }
  last_waiter_ = work;
}

void FutureState::forget_export() { FutureTable::of(messenger_).forget(address_.id); }

std::exception_ptr released_future_error() {
  return std::make_exception_ptr(base::Error(base::StatusCode::kNotFound,
                                             "a copy of a future returned to the PE that made it after the "
                                             "value was set and released there; keep the future that was "
                                             "sent"));
}

void throw_taken() {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      "the value of this future is move-only and was already taken: get() or co_await it once, and "
      "keep the value");
}

void FutureState::forget(Work* work) {
  if (messenger_.closed()) return;  // see mark_ready(); a walk for each of many waiters would take minutes
  Work* previous = nullptr;
  for (Work* at = waiters_; at != nullptr; previous = at, at = at->next) {
    if (at != work) continue;
    (previous == nullptr ? waiters_ : previous->next) = work->next;
    if (last_waiter_ == work) last_waiter_ = previous;
    return;
  }
}

void FutureState::set_error(std::exception_ptr error) {
  if (remote_.id != 0) {
    send_future_message(messenger_, remote_.pe,
                        pack_future_error(messenger_, {remote_.id, FutureSetHeader::kError}, error));
    return;
  }
  if (!accept()) return;
  error_ = std::move(error);
  mark_ready();
}

void FutureState::end_hold() {
  held_ = false;
  if (set_) mark_ready();
}

void FutureState::replace_by_error(std::exception_ptr error) {
  error_ = std::move(error);
  set_ = true;
}

void FutureRefusal::refuse() const {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("{} holds a future, which cannot be saved: nothing can set it in a later job", holder_));
}

FutureAddress FutureState::address() {
  FutureRefusal::check();
  if (remote_.id != 0) return remote_;
  if (address_.id == 0)
    address_ = {static_cast<std::uint32_t>(messenger_.pe()), FutureTable::of(messenger_).enter(this)};
  return address_;
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

FutureState* find_exported_future(Messenger& messenger, std::uint64_t id) {
  return FutureTable::of(messenger).find(id);
}

std::uint32_t future_home_pe(Messenger& messenger) { return static_cast<std::uint32_t>(messenger.pe()); }

// --- The futures that others may set

FutureTable::FutureTable(Messenger& messenger) : messenger_(messenger) {
  messenger_.set_handler(
      kFutureSetHandler,
      [](void* context, MessagePtr message) { static_cast<FutureTable*>(context)->set(std::move(message)); },
      this);
}

FutureTable::~FutureTable() { clear(); }

void FutureTable::clear() {
  auto states = std::exchange(states_, {});
  for (auto& [id, state] : states) state->release();
}

FutureTable& FutureTable::of(Messenger& messenger) {
  return *static_cast<FutureTable*>(messenger.handler_context(kFutureSetHandler));
}

std::uint64_t FutureTable::enter(FutureState* state) {
  const std::uint64_t id = next_++;
  state->acquire();
  states_.emplace(id, state);
  return id;
}

FutureState* FutureTable::find(std::uint64_t id) const {
  auto found = states_.find(id);
  return found == states_.end() ? nullptr : found->second;
}

void FutureTable::forget(std::uint64_t id) {
  auto node = states_.extract(id);
  if (!node.empty()) node.mapped()->release();
}

void FutureTable::set(MessagePtr message) {
  Pup p = message->unpacker();
  FutureSetHeader header;
  p | header;
  auto node = states_.extract(header.id);
  if (header.failed == FutureSetHeader::kErrorUnlessSet &&
      (node.empty() || (node.mapped()->is_set() && !node.mapped()->expects_more()))) {
    if (!node.empty()) node.mapped()->release();
    return;
  }
  if (node.empty()) {
    messenger_.fail(base::format("PE {} set a future of PE {} that was set before; each is set exactly once",
                                 message->envelope().source_pe, messenger_.pe()));
    return;
  }
  FutureState* state = node.mapped();
  if (header.failed != FutureSetHeader::kValue) {
    state->set_error(unpack_error(p));
  } else {
    state->set_packed(p);
  }
  if (state->expects_more()) {
    states_.insert(std::move(node));
    return;
  }
  state->release();
}

}  // namespace weft::runtime
