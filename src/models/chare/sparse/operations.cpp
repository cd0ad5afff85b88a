// Sparse arrays on one PE: their state, the messages between PEs, and the outcomes of operations that this PE has begun. What
// becomes of elements: sparse/elements.cpp; done_inserting(): sparse/sets.cpp.
#include <algorithm>
#include <memory>
#include <utility>

#include "weft/chare/chare.h"
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
using Kind = SparseMessage::Kind;
using Outcome = SparseMessage::Outcome;

// --- Chares

SparseArrays& Chares::sparse() { return *parts_->sparse; }

Collection& Chares::create_sparse(const Shape& shape, const ConstructorInfo& constructor,
                                  std::span<const std::byte> arguments) {
  if (shape.map() == Map::kTable) {
    throw base::Error(StatusCode::kInvalidArgument,
                      "a sparse array cannot have a table of PEs: its bounds may have too many indices; use "
                      "another map, or name "
                      "the PE of each element when it is inserted");
  }
  return create(CollectionKind::kSparse, shape, constructor, arguments);
}

runtime::Future<> Chares::insert(Collection& collection, std::uint64_t index, int pe,
                                 const ConstructorInfo& constructor, std::span<const std::byte> arguments) {
  return parts_->sparse->insert(collection, index, pe, constructor, arguments);
}

runtime::Future<> Chares::remove(Collection& collection, std::uint64_t index) {
  return parts_->sparse->remove(collection, index);
}

void Chares::remove_self(ChareBase& chare) { parts_->sparse->remove_self(chare); }

runtime::Future<> Chares::done_inserting(Collection& collection) {
  return parts_->sparse->done_inserting(collection);
}

void ChareBase::remove_self() { collection_->chares().remove_self(*this); }

// --- State and messages

SparseState& SparseArrays::state(Collection& collection) const {
  return collection.elements_->state<SparseState>(number());
}

const SparseState* SparseArrays::find_state(const Collection& collection) const {
  return collection.elements_->find_state<SparseState>(number());
}

void SparseArrays::close(Collection& target) { target.elements_->states[number()].reset(); }

std::uint64_t Collection::num_counted() const { return chares().sparse().num_counted(*this); }

std::uint64_t SparseArrays::num_counted(const Collection& collection) const {
  const SparseState* const known = find_state(collection);
  return known == nullptr ? 0 : known->num_elements;
}

int SparseArrays::home_of(const Collection& collection, std::uint64_t index) const {
  return collection.home(index);
}

void SparseArrays::expect_sparse(Collection& collection, const char* operation) const {
  collection.expect_alive();
  if (collection.is_sparse()) return;
  throw base::Error(StatusCode::kInvalidArgument,
                    base::format("{} is for sparse arrays, and the collection {} is none: all its elements "
                                 "exist from the start. Make it with "
                                 "Array::create_sparse, in Python weft.Array(..., sparse=True)",
                                 operation, collection.name()));
}

Ticket SparseArrays::begin(Collection& collection, Begun begun) {
  if (begun.is_settled) ++state(collection).num_begun;
  const std::uint64_t id = next_ticket_++;
  begun_.emplace(id, std::move(begun));
  return {static_cast<std::uint32_t>(chares_.runtime().pe()), 0, id};
}

void SparseArrays::forget(Collection& collection, const Ticket& ticket) {
  const auto found = begun_.find(ticket.id);
  if (found->second.is_settled) --state(collection).num_begun;
  begun_.erase(found);
}

MessagePtr SparseArrays::message_of(const SparseMessage& message, std::span<const std::byte> rest) const {
  runtime::Runtime& runtime = chares_.runtime();
  const std::size_t header_bytes = base::packed_size(message, &runtime);
  MessagePtr packed = Message::create(runtime, handler_, header_bytes + rest.size());
  Pup p = Pup::packer(packed->payload(), header_bytes, &runtime);
  p | message;
  std::ranges::copy(rest, packed->payload() + header_bytes);
  return packed;
}

void SparseArrays::send(int pe, const SparseMessage& message, std::span<const std::byte> rest) {
  chares_.runtime().send(pe, message_of(message, rest));
}

void SparseArrays::reply(const std::vector<Ticket>& tickets, const SparseMessage& outcome,
                         std::span<const std::byte> rest) {
  for (const Ticket& ticket : tickets) {
    SparseMessage one;
    one.kind = Kind::kReply;
    one.collection = outcome.collection;
    one.outcome = outcome.outcome;
    one.set = outcome.set;
    one.code = outcome.code;
    one.why = outcome.why;
    one.count = ticket.id;
    send(static_cast<int>(ticket.pe), one,
         outcome.outcome == Outcome::kException ? rest : std::span<const std::byte>());
  }
}

bool SparseArrays::fits(const Collection& target, const SparseMessage& message) const {
  const auto num_pes = static_cast<std::uint32_t>(chares_.runtime().num_pes());
  const bool has_element =
      message.kind == Kind::kInsert || message.kind == Kind::kMake || message.kind == Kind::kRemoved;
  const bool is_at_home = message.kind == Kind::kInsert || message.kind == Kind::kRemoved;
  return target.is_sparse() && message.kind <= Kind::kSetKnown && message.outcome <= Outcome::kException &&
         message.set <= kMostSets && message.pe >= -1 && message.pe < static_cast<int>(num_pes) &&
         message.count <= (message.kind == Kind::kRemoved ? kMostSets : target.shape().size()) &&
         (!has_element || message.index < target.shape().size()) &&
         (!is_at_home || home_of(target, message.index) == chares_.runtime().pe());
}

void SparseArrays::fail_unfit(const Collection& target, const Message& message) {
  chares_.runtime().fail(
      base::format("a message from PE {} about elements of the collection {} does not fit it; do all PEs run "
                   "the same program?",
                   message.envelope().source_pe, target.name()));
}

void SparseArrays::on_message(MessagePtr message) {
  SparseMessage header;
  Pup p = message->unpacker();
  p | header;
  if (header.kind == Kind::kReply) return on_reply(header, p);
  Collection& target = chares_.collection(header.collection);
  const std::span<const std::byte> rest{p.cursor(), p.remaining_bytes()};
  const auto num_pes = static_cast<std::uint32_t>(chares_.runtime().num_pes());
  if (std::ranges::any_of(header.tickets, [=](const Ticket& ticket) { return ticket.pe >= num_pes; })) {
    return fail_unfit(target, *message);
  }
  if (target.destroyed_) return refuse(target, header, rest);
  if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  if (!fits(target, header)) return fail_unfit(target, *message);
  switch (header.kind) {
    case Kind::kInsert:
      return on_insert(target, header, rest);
    case Kind::kMake:
      if (header.number == 0 || header.set == 0 || target.find_constructed(header.index) != nullptr) {
        return fail_unfit(target, *message);
      }
      return construct(target, header, rest);
    case Kind::kRemoved:
      if (state(target).num_at_home == 0) return fail_unfit(target, *message);
      return on_removed(target, header, rest);
    case Kind::kAsk:
      return on_ask(target, header);
    case Kind::kSettle:
      state(target).settling = header.number;
      return settle_if_quiet(target);
    case Kind::kSettled:
      return on_settled(target, header);
    case Kind::kCount:
      return on_count(target, header);
    case Kind::kCounted:
      return on_counted(target, header);
    case Kind::kSet:
      if (header.set <= state(target).set) return fail_unfit(target, *message);
      return on_set(target, header);
    case Kind::kSetKnown:
      return on_set_known(target, header);
    case Kind::kReply:
      break;
  }
}

void SparseArrays::refuse(const Collection& target, const SparseMessage& message,
                          std::span<const std::byte> rest) {
  if (message.kind == Kind::kRemoved) return reply(message.tickets, message, rest);
  reply(message.tickets, message.with_error(StatusCode::kClosed, target.why_gone()));
}

void SparseArrays::on_reply(const SparseMessage& message, Pup& rest) {
  const auto found = begun_.find(message.count);
  if (found == begun_.end() || found->second.collection != message.collection) {
    chares_.runtime().fail(
        "the outcome of an insertion or removal has come that this PE has not begun; do all PEs run the same "
        "program?");
    return;
  }
  const Begun begun = std::move(found->second);
  begun_.erase(found);
  Collection& target = chares_.collection(message.collection);
  if (begun.is_settled && state(target).num_begun != 0) --state(target).num_begun;
  if (message.outcome == Outcome::kDone && message.set <= kMostSets) note_first_set(target, message.set);
  std::exception_ptr error;
  if (message.outcome == Outcome::kException) {
    error = runtime::unpack_error(rest);
  } else if (message.outcome == Outcome::kError) {
    error = std::make_exception_ptr(base::Error(message.code, message.why));
  }
  if (!begun.done) {
    if (error) chares_.runtime().fail_unawaited(error, begun.what);
  } else if (error) {
    begun.done->set_error(error);
  } else {
    begun.done->set();
  }
  settle_if_quiet(target);
}

}  // namespace weft::chare
