// Insertions and removals of elements of sparse arrays.
//
//   insert   caller -> home (registers the element) -> its PE (constructor) -> caller
//   remove   caller -> the element, wherever it is (ends when nothing of it is suspended) -> home -> caller
//
// A constructor that throws ends as a removal does: the home forgets the element and tells the caller.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/sections.h"
#include "weft/runtime/remote_error.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sparse/messages.h"
#include "models/chare/sparse/sparse_arrays.h"
#include "models/chare/sparse/state.h"

namespace weft::chare {

using base::StatusCode;
using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;
using Kind = SparseMessage::Kind;
using Outcome = SparseMessage::Outcome;

namespace {

// The limit for the bytes of waiting calls to elements that do not exist, on each PE and for each array. Without a limit a
// program that calls elements which it never inserts would use up the home's memory.
constexpr std::size_t kMostWaitingBytes = std::size_t{64} << 20;

std::size_t bytes_of(const Message& message) {
  std::size_t bytes = sizeof(Message) + message.payload_bytes();
  for (const runtime::Attachment& attachment : message.attachments()) bytes += attachment.buffer().size_bytes;
  return bytes;
}

// The ticket in a message that asks for a removal; without an id if the message does not fit.
Ticket ticket_of(Message& message) {
  Ticket ticket;
  if (message.payload_bytes() == sizeof(EntryHeader) + sizeof ticket) {
    std::memcpy(&ticket, message.payload() + sizeof(EntryHeader), sizeof ticket);
  }
  return ticket;
}

}  // namespace

// --- Insertion

runtime::Future<> SparseArrays::insert(Collection& collection, std::uint64_t index, int pe,
                                       const ConstructorInfo& constructor,
                                       std::span<const std::byte> arguments) {
  expect_sparse(collection, "insert()");
  runtime::Runtime& runtime = chares_.runtime();
  if (pe < -1 || pe >= runtime.num_pes()) {
    throw base::Error(StatusCode::kOutOfRange,
                      base::format("{} cannot be inserted on PE {}; the job has PEs 0 to {}",
                                   collection.element_name(index), pe, runtime.num_pes() - 1));
  }
  SparseMessage message;
  message.kind = Kind::kInsert;
  message.collection = collection.id();
  message.index = index;
  message.pe = pe;
  message.constructor = constructor.id;
  const int home = home_of(collection, index);
  runtime::Future<> done(runtime);
  const Ticket ticket = begin(collection, {collection.id(), true, done, {}});
  message.tickets.push_back(ticket);
  try {
    runtime.send_call(home, message_of(message, arguments));
  } catch (...) {
    forget(collection, ticket);
    throw;
  }
  return done;
}

void SparseArrays::on_insert(Collection& target, SparseMessage& message,
                             std::span<const std::byte> arguments) {
  const int pe = chares_.runtime().pe();
  auto& directory = target.elements_->directory;
  const runtime::Whereabouts at = directory.whereabouts(message.index, pe);
  if (target.find_constructed(message.index) != nullptr || at.pe != pe) {
    return reply(message.tickets,
                 message.with_error(StatusCode::kInvalidArgument,
                                    base::format("{} cannot be inserted: it exists already. Remove it first",
                                                 target.element_name(message.index))));
  }
  SparseState& here = state(target);
  ++here.num_at_home;
  message.kind = Kind::kMake;
  message.number = at.move + 1;
  message.set = here.counted + 1;
  if (message.pe < 0 || message.pe == pe) {
    construct(target, message, arguments);
  } else {
    directory.learn(message.index, message.pe, message.number);
    send(message.pe, message, arguments);
  }
  release_waiting(target, message.index);
}

void SparseArrays::construct(Collection& target, const SparseMessage& message,
                             std::span<const std::byte> arguments) {
  runtime::Runtime& runtime = chares_.runtime();
  const ConstructorInfo* const constructor = Registry<ConstructorInfo>::find(message.constructor);
  if (constructor == nullptr || constructor->type != target.type()) {
    runtime.fail(base::format(
        "{} is to be inserted with a constructor that PE {} does not have; do all PEs run the same program?",
        target.element_name(message.index), runtime.pe()));
    return;
  }
  try {
    // The set may have been announced before the element has come.
    NewChare place(target, message.index, std::max(message.set, state(target).set));
    Pup p = Pup::unpacker(arguments.data(), arguments.size(), &runtime);
    std::unique_ptr<ChareBase> made = constructor->construct(p);
    if (made == nullptr) return;  // it has ended the job
    made->num_moves_ = message.number;
    ChareBase& chare = *made.release();
    if (target.has_created()) {
      target.elements_->being_created.emplace(message.index, &chare);
      SparseState& here = state(target);
      here.being_made.insert_or_assign(message.index, message);
      if (chare.set_ == here.set) {  // counted already
        joins_sets(chare);
        here.is_incomplete = true;
      }
      return target.type()->begin_created(chare);
    }
    target.elements_->directory.insert(message.index, &chare);
    joins_sets(chare);
    is_inserted(chare, message);
  } catch (...) {
    no_element(target, message,
               runtime::as_remote_error(std::current_exception(),
                                        base::format("in the constructor of {} on PE {}",
                                                     target.element_name(message.index), runtime.pe())));
  }
  chares_.parts_->release_held(target, message.index);
}

void SparseArrays::is_made(ChareBase& chare) {
  is_inserted(chare, state(chare.collection()).being_made.extract(chare.linear_index()).mapped());
}

void SparseArrays::is_inserted(const ChareBase& chare, const SparseMessage& insertion) {
  note_first_set(chare.collection(), chare.set_);
  reply(insertion.tickets, insertion);
}

void SparseArrays::not_made(ChareBase& chare, const std::exception_ptr& with_place) {
  Collection& target = chare.collection();
  const auto node = state(target).being_made.extract(chare.linear_index());
  const SparseMessage& insertion = node.mapped();
  left(target, chare);
  chare.is_removed_ = true;
  std::shared_ptr<ChareBase> gone(&chare);
  for (const runtime::Runtime::InstalledModel& installed : chares_.runtime().models())
    installed.model->element_ends({target.id(), chare.linear_index()}, gone);
  // In a later turn: the caller is the end of its method.
  chares_.parts_->leaving.add(std::move(gone));
  if (chare.num_suspended() == 0) {
    chares_.parts_->free_later(chare);
  } else {
    chare.num_suspended_ |= ChareBase::kLeaves;
  }
  no_element(target, insertion, with_place);
  chares_.parts_->release_held(target, insertion.index);
}

void SparseArrays::no_element(Collection& target, const SparseMessage& insertion,
                              const std::exception_ptr& error) {
  runtime::Runtime& runtime = chares_.runtime();
  Pup sizer = Pup::sizer(&runtime);
  runtime::pack_error(sizer, error);
  std::vector<std::byte> packed(sizer.offset_bytes());
  Pup packer = Pup::packer(packed.data(), packed.size(), &runtime);
  runtime::pack_error(packer, error);
  SparseMessage gone = insertion;
  gone.kind = Kind::kRemoved;
  gone.number = insertion.number + 1;
  gone.outcome = Outcome::kException;
  const int home = home_of(target, insertion.index);
  target.elements_->directory.leave(insertion.index, home, gone.number);
  chares_.parts_->sections->forget(target, insertion.index);
  // The constructor may have asked for the removal of its element.
  if (auto asked = state(target).removals.extract(insertion.index); !asked.empty()) {
    SparseMessage removed;
    removed.collection = target.id();
    reply(asked.mapped(), removed);
  }
  if (home == runtime.pe()) {
    on_removed(target, gone, packed);
  } else {
    send(home, gone, packed);
  }
}

// --- Removal

runtime::Future<> SparseArrays::remove(Collection& collection, std::uint64_t index) {
  expect_sparse(collection, "remove()");
  runtime::Runtime& runtime = chares_.runtime();
  runtime::Future<> done(runtime);
  const Ticket ticket = begin(collection, {collection.id(), true, done, {}});
  try {
    const EntryHeader header{collection.id(), index, 0, 0, {}};
    MessagePtr message = Message::create(runtime, removal_handler_, sizeof header + sizeof ticket);
    std::memcpy(message->payload(), &header, sizeof header);
    std::memcpy(message->payload() + sizeof header, &ticket, sizeof ticket);
    chares_.send_entry(collection, index, std::move(message));
  } catch (...) {
    forget(collection, ticket);
    throw;
  }
  return done;
}

void SparseArrays::remove_self(ChareBase& chare) {
  expect_sparse(chare.collection(), "remove_self()");
  remove_here(chare, begin(chare.collection(), {chare.collection().id(), true, std::nullopt,
                                                base::format("the removal of {}", chare.where())}));
}

void SparseArrays::on_remove(MessagePtr message) {
  const EntryHeader header = read_header(*message);
  Collection& target = chares_.collection(header.collection);
  if (target.is_destroyed()) {
    const Ticket ticket = ticket_of(*message);
    if (ticket.pe >= static_cast<std::uint32_t>(chares_.runtime().num_pes()))
      return fail_unfit(target, *message);
    SparseMessage removed;
    removed.collection = target.id();
    return reply({ticket}, removed.with_error(StatusCode::kClosed, target.why_gone()));
  }
  ChareBase* const chare = chares_.parts_->find_ready_or_forward(message);
  if (chare == nullptr) return;
  const Ticket ticket = ticket_of(*message);
  if (ticket.id == 0 || ticket.pe >= static_cast<std::uint32_t>(chares_.runtime().num_pes()) ||
      !chare->collection().is_sparse()) {
    return fail_unfit(chare->collection(), *message);
  }
  remove_here(*chare, ticket);
}

void SparseArrays::remove_here(ChareBase& chare, const Ticket& ticket) {
  std::vector<Ticket>& asked = state(chare.collection()).removals[chare.linear_index()];
  asked.push_back(ticket);
  // In a turn of its own, because the caller may be a method of the element.
  if (asked.size() == 1) {
    chares_.parts_->wanted_moves.add({chare.collection().id(), chare.linear_index()});
  }
}

bool SparseArrays::is_to_be_removed(const ChareBase& chare) const {
  const SparseState* const here = find_state(chare.collection());
  return here != nullptr && here->removals.contains(chare.linear_index());
}

bool SparseArrays::remove_when_idle(ChareBase& chare) {
  Collection& from = chare.collection();
  if (!from.is_sparse()) return false;
  SparseState& here = state(from);
  const std::uint64_t index = chare.linear_index();
  const auto asked = here.removals.find(index);
  if (asked == here.removals.end()) return false;
  if (chare.num_suspended() != 0) {
    chare.num_suspended_ |= ChareBase::kMoves;  // the end of the last method asks again
    chares_.runtime().stay({from.id(), index});
    for (Feature* const feature : chares_.parts_->features) feature->moves_no_more(chare);
    settle_if_quiet(from);
    return true;
  }
  SparseMessage removed;
  removed.kind = Kind::kRemoved;
  removed.collection = from.id();
  removed.index = index;
  removed.number = chare.num_moves_ + 1;
  removed.set = chare.set_;
  removed.tickets = std::move(asked->second);
  here.removals.erase(asked);
  runtime::Runtime& runtime = chares_.runtime();
  // A model that is busy with the element prevents the removal, because state that is not saved would be lost.
  base::Status obstacle = runtime.obstacle_to_removing({from.id(), index});
  const bool has_contributed =
      chare.next_reduction_ != 0 || chares_.parts_->sections->has_contributed(chare, chare.set_);
  if (obstacle.ok() && chare.set_ > here.set && has_contributed) {
    obstacle = {StatusCode::kInvalidArgument,
                "it has contributed to a reduction of elements that are not counted yet; await "
                "done_inserting() before"};
  }
  if (obstacle.ok() && chare.num_waiting_calls() != 0) {
    obstacle = {StatusCode::kInvalidArgument,
                base::format("{} of its calls wait for their conditions; await them before",
                             chare.num_waiting_calls())};
  }
  if (!obstacle.ok()) {
    reply(removed.tickets,
          removed.with_error(StatusCode::kInvalidArgument,
                             base::format("{} cannot be removed: {}", chare.where(), obstacle.message())));
    settle_if_quiet(from);
    return false;
  }
  for (Feature* const feature : chares_.parts_->features) {
    feature->left(from, chare);
    feature->moves_no_more(chare);
  }
  chare.is_removed_ = true;
  here.is_incomplete = true;
  here.removed_since_counted = true;
  removed.count = here.counted;
  const int home = home_of(from, index);
  from.elements_->directory.leave(index, home, removed.number);
  std::vector<std::shared_ptr<ChareBase>> gone(1);
  gone[0].reset(&chare);
  for (const runtime::Runtime::InstalledModel& installed : runtime.models())
    installed.model->element_ends({from.id(), index}, gone[0]);
  chares_.parts_->free(std::move(gone));
  if (home == runtime.pe()) {
    on_removed(from, removed, {});
    settle_if_quiet(from);
  } else {
    removed.tickets.push_back(begin(from, {from.id(), true, std::nullopt, {}}));
    send(home, removed);
  }
  return true;
}

void SparseArrays::on_removed(Collection& target, const SparseMessage& message,
                              std::span<const std::byte> rest) {
  SparseState& here = state(target);
  --here.num_at_home;
  // It was counted, and its PE forgets when it counts itself that it has removed an element. Otherwise that PE alone says so:
  // a gathered call in which the element has removed itself may reach this PE later than this message.
  if (message.set <= here.counted && message.count < here.counted) {
    here.is_incomplete = true;
    here.removed_since_counted = true;
  }
  target.elements_->directory.ended(message.index, message.number);
  reply(message.tickets, message, rest);
  chares_.parts_->release_held(target, message.index);
}

// --- Elements that do not exist

void SparseArrays::has_no_element(Collection& target, EntryHeader header, MessagePtr message) {
  runtime::Runtime& runtime = chares_.runtime();
  const std::string name = target.element_name(header.index);
  const runtime::HandlerId handler = message->envelope().handler;
  if (handler == removal_handler_) {
    const Ticket ticket = ticket_of(*message);
    if (ticket.pe >= static_cast<std::uint32_t>(runtime.num_pes())) return fail_unfit(target, *message);
    SparseMessage outcome;
    outcome.collection = target.id();
    return reply({ticket}, outcome.with_error(StatusCode::kNotFound,
                                              base::format("{} cannot be removed: it does not exist", name)));
  }
  // A call to a section waits, as one to the element does: its caller knows its members.
  const bool is_of_section = handler == chares_.entry_handler() && header.reply.is_direct();
  const bool is_gathered = header.reply.kind == ReplyTo::Kind::kGather && !is_of_section;
  // Its copy of a broadcast, which it has not waited for.
  if (handler == chares_.first_handler_ + kBroadcastCopy && !is_gathered) return;
  if (is_gathered && !header.reply.is_direct()) {
    // Its part of a broadcast that this PE has begun, see Chares::forward().
    runtime.reductions().contributor_left({header.reply.pe, kGatherScopes | header.reply.id}, 0);
    header.reply.id |= ReplyTo::kDirectly;
  }
  SparseState& here = state(target);
  std::string why;
  if (here.set == 0 && !is_gathered) {
    const std::size_t bytes = bytes_of(*message);
    if (here.waiting_bytes + bytes <= kMostWaitingBytes) {
      here.waiting_bytes += bytes;
      here.waiting[header.index].push_back(std::move(message));
      return;
    }
    why = base::format(
        "{} finds no element: {} has not been inserted, and calls of {} MiB wait for elements of that "
        "collection on "
        "PE {} already. Insert the elements earlier",
        chares_.parts_->describe_call(target, header, *message), name, kMostWaitingBytes >> 20, runtime.pe());
  } else {
    why = base::format(
        "{} finds no element: {} does not exist. Insert it before the call, and await the insertion; await "
        "calls "
        "before the element is removed",
        chares_.parts_->describe_call(target, header, *message), name);
  }
  chares_.parts_->refuse(target, header, *message, StatusCode::kNotFound, why);
}

void SparseArrays::release_waiting(Collection& target, std::uint64_t index) {
  SparseState& here = state(target);
  auto node = here.waiting.extract(index);
  if (node.empty()) return;
  for (MessagePtr& message : node.mapped()) {
    here.waiting_bytes -= bytes_of(*message);
    chares_.runtime().send(chares_.runtime().pe(), std::move(message));
  }
}

std::vector<MessagePtr> SparseArrays::collection_ended(Collection& target, FeatureStates& states,
                                                       const std::string& why) {
  auto* const known = static_cast<SparseState*>(states[number()].get());
  if (known == nullptr) return {};
  SparseState& state = *known;
  // Contributions may have come for the next set, and for one that another PE has counted already.
  for (std::uint32_t set = state.set; set <= state.set + 2; ++set)
    chares_.runtime().reductions().close(scope_of(target, set), why);
  SparseMessage ended;
  ended.collection = target.id();
  for (const auto& [index, tickets] : state.removals) reply(tickets, ended);
  const SparseMessage closed = ended.with_error(StatusCode::kClosed, target.why_gone());
  reply(state.round.callers, closed);
  reply(state.round.later, closed);
  for (const auto& [index, insertion] : state.being_made) refuse(target, insertion, {});
  std::vector<MessagePtr> waiting;
  for (auto& [index, messages] : state.waiting) {
    for (MessagePtr& one : messages) waiting.push_back(std::move(one));
  }
  return waiting;
}

}  // namespace weft::chare
