#include "runtime/future_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weft/runtime/messenger.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/losses/losses.h"
#include "runtime/message/handlers.h"
#include "runtime/save_refusal.h"

namespace weft::runtime {

namespace {

// The error held by a copy of a future that returns after the value was set and released.
std::exception_ptr released_future_error() {
  return std::make_exception_ptr(base::Error(base::StatusCode::kNotFound,
                                             "a copy of a future returned to the PE that made it after the "
                                             "value was set and released there; keep the future that was "
                                             "sent"));
}

}  // namespace

// --- What a future's state has to do with the table

void FutureState::mark_ready() {
  set_ = true;
  if (held_) [[unlikely]]
    return;
  ready_ = true;
  // The waiting frames and callbacks are being destroyed, in any order, so none of them may be posted.
  if (messenger_.closed()) {
    waiters_ = nullptr;
    table_keeps_ &= static_cast<std::uint8_t>(~kKeepsPlaces);
  }
  while (waiters_ != nullptr) {
    Work* work = waiters_;
    waiters_ = work->next;
    messenger_.post(work);
  }
  if (table_keeps_ != 0) [[unlikely]]
    FutureTable::of(messenger_).end_wait(*this);
}

void FutureState::forget_of_many(Work* work) { FutureTable::of(messenger_).forget_waiter(*this, work); }

void FutureState::note_place(Work* work) {
  FutureTable::of(messenger_).note_place(*this, work, last_waiter_);
}

void FutureState::forget_export() { FutureTable::of(messenger_).forget(address_.id); }

FutureAddress FutureState::address() {
  SaveRefusal::check(
      [] { return std::string("a future, which cannot be saved: nothing can set it in a later job"); });
  if (remote_.id != 0) return remote_;
  if (address_.id == 0)
    address_ = {static_cast<std::uint32_t>(messenger_.pe()), FutureTable::of(messenger_).enter(this)};
  return address_;
}

FutureHandle FutureState::handle() {
  FutureHandle handle{address(), FutureHandle::Kind::kSetter, {}};
  MovingFutures* const moving = MovingFutures::active();
  if (moving == nullptr || (remote_.id != 0 && !is_mirror_)) return handle;
  if (ready_ && moving->takes_outcome(*this)) {
    handle.kind = FutureHandle::Kind::kOutcome;
  } else {
    handle.kind = FutureHandle::Kind::kLinked;
    handle.link = {static_cast<std::uint32_t>(messenger_.pe()), moving->link_of(*this)};
  }
  return handle;
}

void FutureState::pack_outcome(Pup& p) {
  const MovingFutures::Outcome packing(*this);
  std::exception_ptr error = error_;
  if (!error && !has_value()) {
    try {
      throw_taken();
    } catch (...) {
      error = std::current_exception();
    }
  }
  const bool failed = error != nullptr;
  p | failed;
  failed ? pack_error(p, error) : pup_value(p);
}

void FutureState::forget_mirror() { FutureTable::of(messenger_).remove_mirror(*this); }

// --- The table

FutureTable::FutureTable(Messenger& messenger) : messenger_(messenger) {
  const auto handle = [this](HandlerId id, MessageHandler handler) {
    messenger_.set_handler(id, handler, this);
  };
  handle(kFutureSetHandler,
         [](void* self, MessagePtr m) { static_cast<FutureTable*>(self)->on_set(std::move(m)); });
  handle(kFutureWantHandler,
         [](void* self, MessagePtr m) { static_cast<FutureTable*>(self)->on_want(std::move(m)); });
  handle(kFutureReleaseHandler,
         [](void* self, MessagePtr m) { static_cast<FutureTable*>(self)->on_release(std::move(m)); });
  handle(kFutureCopyHandler,
         [](void* self, MessagePtr m) { static_cast<FutureTable*>(self)->on_copy(std::move(m)); });
}

FutureTable::~FutureTable() { clear(); }

void FutureTable::clear() {
  const auto states = std::exchange(states_, {});
  const auto links = std::exchange(links_, {});
  links_of_.clear();
  places_of_.clear();
  // Their holders may outlive the table.
  for (const auto& [address, mirror] : mirrors_) mirror.state->is_mirror_ = false;
  mirrors_.clear();
  for (const auto& [id, link] : links) link.state->table_keeps_ = 0;
  for (const auto& [id, link] : links) link.state->release();
  for (const auto& [id, state] : states) state->release();
}

FutureTable& FutureTable::of(Messenger& messenger) {
  return *static_cast<FutureTable*>(messenger.handler_context(kFutureSetHandler));
}

// --- Futures that others may set

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

void FutureTable::on_set(MessagePtr message) {
  Pup p = message->unpacker();
  FutureSetHeader header;
  p | header;
  // In the table while it is set, because its value may hold a copy of it.
  const FutureShare<FutureState> state(find(header.id));
  if (state.get() == nullptr || (state->is_set() && !state->expects_more())) [[unlikely]] {
    if (header.failed == FutureSetHeader::kErrorUnlessSet) return forget(header.id);
    return fail_set(message->envelope().source_pe, header.id, state.get());
  }
  if (header.failed != FutureSetHeader::kValue) {
    state->set_error(unpack_error(p));
  } else {
    state->set_packed(p);
  }
  if (state->expects_more()) return;
  // A value may be followed by what has set it.
  if (p.remaining_bytes() != 0 && header.failed == FutureSetHeader::kValue) [[unlikely]] {
    const std::string_view setter(reinterpret_cast<const char*>(p.cursor()), p.remaining_bytes());
    remember_setter(header.id, message->envelope().source_pe, setter);
  }
  forget(header.id);
}

// --- What has set futures

void FutureTable::remember_setter(std::uint64_t id, std::uint32_t pe, std::string_view setter) {
  constexpr std::size_t num_remembered = 256;
  constexpr std::size_t most_bytes = 1024;  // more is not what a language has packed
  if (setter.size() > most_bytes) return;
  if (setters_.empty()) setters_.resize(num_remembered);
  Setter& slot = setters_[id % num_remembered];
  slot.id = id;
  slot.pe = pe;
  slot.packed.assign(setter);
}

void FutureTable::fail_set(std::uint32_t pe, std::uint64_t id, const FutureState* state) {
  if (messenger_.losses().count() > 0) return;  // it was set to an error because a PE was lost
  std::string who = state == nullptr ? std::string() : state->setter();
  if (who.empty() && describe_setter_ != nullptr && !setters_.empty()) {
    const Setter& known = setters_[id % setters_.size()];
    if (known.id == id && id != 0) who = describe_setter_(messenger_, known.pe, known.packed);
  }
  if (!who.empty()) who.insert(0, ", by ");
  messenger_.fail(base::format("PE {} set a future of PE {} that was set before{}; each is set exactly once",
                               pe, messenger_.pe(), who));
}

// --- Waiters that give up

void FutureTable::forget_waiter(FutureState& state, Work* work) {
  WaiterPlaces& places = places_of_[&state];
  if ((state.table_keeps_ & FutureState::kKeepsPlaces) == 0) {
    state.table_keeps_ |= FutureState::kKeepsPlaces;
    Work* previous = nullptr;
    for (Work* at = state.waiters_; at != nullptr; previous = std::exchange(at, at->next))
      places[at] = previous;
  }
  const auto found = places.find(work);
  if (found == places.end()) return;
  Work* const previous = found->second;
  places.erase(found);
  if (work->next != nullptr) places[work->next] = previous;
  state.unlink(previous, work);
  if (state.waiters_ == nullptr) forget_places(state);
}

void FutureTable::note_place(FutureState& state, Work* work, Work* previous) {
  places_of_[&state][work] = previous;
}

void FutureTable::forget_places(FutureState& state) {
  state.table_keeps_ &= static_cast<std::uint8_t>(~FutureState::kKeepsPlaces);
  places_of_.erase(&state);
}

// --- Links

std::uint64_t FutureTable::link(FutureState& state) {
  const std::uint64_t id = next_link_++;
  state.acquire();
  Link& link = links_.try_emplace(id, Link{.id = id, .state = &state, .reader = {}}).first->second;
  Link*& first = links_of_[&state];
  link.next = first;
  if (first != nullptr) first->previous = &link;
  first = &link;
  state.table_keeps_ |= FutureState::kKeepsLinks;
  return id;
}

void FutureTable::end_wait(FutureState& state) {
  if ((state.table_keeps_ & FutureState::kKeepsPlaces) != 0) forget_places(state);
  answer(state);
}

void FutureTable::answer(FutureState& state) {
  const auto found = links_of_.find(&state);
  if (found == links_of_.end()) return;
  const FutureShare<FutureState> keep(&state);
  // Copied, because the value that is sent may make links of its own. The others wait to be asked.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> asked;
  for (const Link* link = found->second; link != nullptr; link = link->next) {
    if (link->reader) asked.emplace_back(link->id, *link->reader);
  }
  for (const auto& [id, reader] : asked) {
    send_outcome(state, reader);
    drop_link(id);
  }
}

void FutureTable::send_outcome(FutureState& state, std::uint32_t to_pe) {
  const FutureAddress future = state.address();
  try {
    state.send_outcome(to_pe, future);
  } catch (...) {  // the value cannot travel: the copy gets the reason
    Pup sizer = Pup::sizer(&messenger_.runtime());
    const bool failed = true;
    const std::exception_ptr error = std::current_exception();
    sizer | future.pe | future.id | failed;
    pack_error(sizer, error);
    MessagePtr message = Message::create(messenger_, kFutureCopyHandler, sizer.offset_bytes());
    Pup p = Pup::packer(message->payload(), message->payload_bytes(), &messenger_.runtime());
    p | future.pe | future.id | failed;
    pack_error(p, error);
    messenger_.send(static_cast<int>(to_pe), std::move(message));
  }
}

void FutureTable::drop_link(std::uint64_t id) {
  const auto node = links_.extract(id);
  const Link& link = node.mapped();
  FutureState* const state = link.state;
  if (link.next != nullptr) link.next->previous = link.previous;
  if (link.previous != nullptr) {
    link.previous->next = link.next;
  } else if (link.next != nullptr) {
    links_of_.find(state)->second = link.next;
  } else {
    links_of_.erase(state);
    state->table_keeps_ &= static_cast<std::uint8_t>(~FutureState::kKeepsLinks);
  }
  state->release();
}

void FutureTable::on_want(MessagePtr message) {
  std::uint64_t id = 0;
  message->unpacker() | id;
  const auto found = links_.find(id);
  if (found == links_.end()) return;  // the release has overtaken this message
  const std::uint32_t reader = message->envelope().source_pe;
  if (found->second.reader && *found->second.reader != reader) {
    messenger_.fail(base::format(
        "PE {} asks PE {} for the value of a future whose copy is on PE {}; do all PEs run the same program?",
        reader, messenger_.pe(), *found->second.reader));
    return;
  }
  found->second.reader = reader;
  FutureState& state = *found->second.state;
  if (!state.is_ready()) return;
  send_outcome(state, reader);
  drop_link(id);
}

void FutureTable::on_release(MessagePtr message) {
  std::vector<std::uint64_t> ids;
  message->unpacker() | ids;
  for (const std::uint64_t id : ids) {
    if (links_.contains(id)) drop_link(id);  // else the value has been sent
  }
}

void FutureTable::release_link(FutureAddress link) {
  const bool is_first = releases_.empty();
  releases_[link.pe].push_back(link.id);
  if (is_first && !messenger_.closed()) messenger_.post(&release_work_);
}

void FutureTable::send_releases() {
  for (const auto& [pe, ids] : std::exchange(releases_, {})) {
    messenger_.send(static_cast<int>(pe), Message::pack(messenger_, kFutureReleaseHandler, ids));
  }
}

// --- Mirrors

FutureState* FutureTable::find_mirror(FutureAddress future) const {
  const auto found = mirrors_.find(future);
  return found == mirrors_.end() ? nullptr : found->second.state;
}

void FutureTable::add_mirror(FutureState& state, FutureAddress link) {
  state.is_mirror_ = mirrors_.try_emplace(state.remote_, Mirror{&state, link}).second;
  if (link.id == 0) return;
  messenger_.send(static_cast<int>(link.pe), Message::pack(messenger_, kFutureWantHandler, link.id));
}

FutureAddress FutureTable::link_of(const FutureState& state) const {
  if (!state.is_mirror_) return {};
  return mirrors_.at(state.remote_).link;
}

void FutureTable::remove_mirror(FutureState& state) {
  const auto node = mirrors_.extract(state.remote_);
  const FutureAddress link = node.mapped().link;
  if (link.id != 0 && !state.is_set() && !messenger_.closed()) release_link(link);
}

void FutureTable::on_copy(MessagePtr message) {
  Pup p = message->unpacker();
  FutureAddress future;
  p | future.pe | future.id;
  const FutureShare<FutureState> mirror(find_mirror(future));
  if (mirror.get() == nullptr || mirror->is_ready())
    return;  // its last holder has gone, or the value came another way
  mirror->unpack_outcome(p);
}

// --- Handles that arrive

FutureState* find_future(Messenger& messenger, const FutureHandle& handle) {
  const auto num_pes = static_cast<std::uint32_t>(messenger.num_pes());
  const auto own_pe = static_cast<std::uint32_t>(messenger.pe());
  const bool is_linked = handle.kind == FutureHandle::Kind::kLinked;
  const FutureTable& table = FutureTable::of(messenger);
  FutureState* known = handle.future.pe == own_pe ? table.find(handle.future.id) : nullptr;
  if (known == nullptr) known = table.find_mirror(handle.future);
  // A link of this PE is to a future that this PE knows.
  const bool is_own_link = is_linked && handle.link.pe == own_pe && known == nullptr;
  if (handle.future.pe >= num_pes || is_own_link ||
      (is_linked && (handle.link.pe >= num_pes || handle.link.id == 0))) {
    base::refuse_claim("a value arrived damaged: a future of no PE");
  }
  return known;
}

void FutureTable::bind(FutureState& state, const FutureHandle& handle, bool other_type) {
  const bool is_own = handle.future.pe == static_cast<std::uint32_t>(messenger_.pe());
  if (other_type || (is_own && handle.kind == FutureHandle::Kind::kSetter)) {
    state.set_error(released_future_error());
    return;
  }
  state.remote_ = handle.future;
  if (handle.kind != FutureHandle::Kind::kSetter) add_mirror(state, handle.link);
}

void bind_future(FutureState& state, const FutureHandle& handle, bool other_type) {
  FutureTable::of(state.messenger()).bind(state, handle, other_type);
}

void accept_link(FutureState& state, const FutureHandle& handle) {
  // The program copies a state that is about to leave, and the link leaves with it.
  if (handle.link.pe == static_cast<std::uint32_t>(state.messenger().pe())) return;
  FutureTable& table = FutureTable::of(state.messenger());
  if (table.link_of(state) != handle.link) table.release_link(handle.link);
}

FutureState* find_exported_future(Messenger& messenger, std::uint64_t id) {
  return FutureTable::of(messenger).find(id);
}

}  // namespace weft::runtime
