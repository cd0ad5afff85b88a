// Calls to all elements of a collection.
//
// Every PE runs the method on its elements. An element that moves meanwhile could be missed by all PEs, or be found by
// two. Broadcasts are therefore numbered by their source, a PE knows which ones it has handled, and an element that has
// moved knows which ones it has run: it skips them. What it would miss, the PE that it has left sends after it, see
// Departures. Elements that have never moved cost nothing: they have run what their PE has handled.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;

namespace {

constexpr std::size_t kPrefetchDistance = 8;

// Between the header and the arguments of a broadcast that is sent after an element.
struct CopyOf {
  std::uint64_t number = 0;
  std::uint32_t source = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(CopyOf) == 16);

int creator_of(std::uint64_t collection) { return static_cast<int>(collection >> 32); }

}  // namespace

// --- Sending

MessagePtr Chares::make_broadcast_message(const EntryHeader& header, std::size_t argument_bytes) {
  MessagePtr message = make_entry_message(header, argument_bytes);
  message->envelope().handler = broadcast_handler();
  return message;
}

runtime::OperationState* Chares::broadcast_call_message(Collection& collection, MessagePtr message,
                                                        bool has_payload) {
  runtime::OperationState* const sending =
      has_payload ? runtime::report_sending(runtime_, *message) : nullptr;
  return runtime::send_reported(sending, [&] { broadcast_entry(collection, std::move(message)); });
}

void Chares::broadcast_entry(Collection& collection, MessagePtr message) {
  collection.expect_alive();
  const std::uint64_t number = parts_->number_broadcast(collection, *message);
  try {
    runtime_.broadcast_call(std::move(message));
  } catch (...) {  // it was not sent. Flow control may have run others meanwhile
    if (collection.elements_->next_broadcast == number) --collection.elements_->next_broadcast;
    throw;
  }
}

std::uint64_t Chares::Parts::number_broadcast(Collection& collection, Message& message) {
  EntryHeader header = read_header(message);
  header.index = ++collection.elements_->next_broadcast;
  header.move_or_source = static_cast<std::uint32_t>(runtime_.pe());
  std::memcpy(message.payload(), &header, sizeof header);
  return header.index;
}

runtime::Target Chares::target_of_all(const EntryHeader& header) const {
  runtime::Target target;
  target.handler = broadcast_handler();
  target.flags = runtime::kBroadcastFlag;
  target.prefix = base::pack_small(header);
  return target;
}

runtime::Target Chares::Parts::numbered(const runtime::Target& target, ChareBase& contributor) const {
  auto header = base::unpack<EntryHeader>(target.prefix);
  runtime::Target result = target;
  // Elements of a sparse array have not contributed equally often.
  if (header.collection == contributor.collection().id() && !contributor.collection().is_sparse()) {
    header.index = ++contributor.num_results_;
    header.move_or_source = kReductionSource;
    std::memcpy(result.prefix.data(), &header, sizeof header);
  } else {
    result.handler = first_handler_ + kBroadcastResult;
    result.flags = 0;
    result.pe = static_cast<std::uint32_t>(creator_of(header.collection));
  }
  return result;
}

void Chares::Parts::on_broadcast_result(MessagePtr message) {
  const EntryHeader header = read_header(*message);
  Collection& target = chares_.collection(header.collection);
  if (target.destroyed_) return refuse(target, header, *message);
  message->envelope().handler = chares_.broadcast_handler();
  MessagePtr call = chares_.make_broadcast_message(header, message->payload_bytes() - sizeof header);
  std::memcpy(call->payload(), message->payload(), message->payload_bytes());
  number_broadcast(target, *call);
  runtime_.broadcast(std::move(call));  // no caller could wait for room
}

// --- Handling

void Chares::Parts::on_broadcast(MessagePtr message) {
  EntryHeader header = read_header(*message);
  Collection& target = chares_.collection(header.collection);
  if (target.destroyed_) return refuse(target, header, *message);
  // An element of a sparse array that is being created is being inserted: it may get the call or not.
  if (!target.created_ || (!target.is_sparse() && !target.elements_->being_created.empty())) {
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  const BroadcastId id{header.move_or_source, header.index};
  header.index = 0;
  header.move_or_source = 0;
  const EntryInfo* const entry = checked_entry(target, header);
  if (entry == nullptr) return;
  if (id.source != kReductionSource && id.source >= static_cast<std::uint32_t>(runtime_.num_pes())) {
    return fail_unfit(header);
  }
  Collection::Elements& elements = *target.elements_;
  const bool is_numbered = id.number != 0;
  if (is_numbered && !elements.handled.add(id)) return fail_unfit(header);
  // The directory may change while methods run, so the elements are listed first.
  std::vector<ChareBase*> chares;
  chares.reserve(target.num_local());
  elements.directory.for_each([&](std::uint64_t, ChareBase& chare) {
    if (chare.seen_ != nullptr && is_numbered) [[unlikely]] {
      const bool is_new = chare.seen_->add(id);
      if (elements.handled.includes(*chare.seen_) && chare.seen_->includes(elements.handled))
        chare.seen_.reset();
      if (!is_new) return;
    }
    chares.push_back(&chare);
  });
  if (target.is_sparse() && header.reply.kind == ReplyTo::Kind::kGather) {
    if (!sets->serves_gather(target, header, *message)) [[unlikely]]
      return;
    sets->keep_those_of_set(target, chares);
  }
  if (header.reply.kind == ReplyTo::Kind::kGather && !is_given_up(header.reply, runtime_.pe())) {
    runtime_.reductions().open({header.reply.pe, kGatherScopes | header.reply.gather()},
                               target.num_elements(), chares.size(), true);
  }
  if (is_numbered && !elements.departures.empty()) [[unlikely]] {
    elements.departures.handled(id, elements.handled, [&](const Departure& left) {
      // An element of a set that is not counted yet has no part in a gather.
      if (header.reply.kind == ReplyTo::Kind::kGather && target.is_sparse() &&
          left.set > sets->latest_set(target)) {
        return;
      }
      send_after(target, *message, header, id, left);
    });
  }
  if (!message->attachments().empty()) return share_broadcast(std::move(message), header, chares);
  const Sections::SharedArguments shared(*sections, message->payload_span().subspan(sizeof header));
  const bool shares = shares_arguments(*entry, chares.size(), message->payload_bytes() - sizeof header);
  std::unique_ptr<SharedCall> shared_call;
  for (std::size_t i = 0; i < chares.size(); ++i) {
    ChareBase* const chare = chares[i];
    // The elements of a large collection do not fit in the cache, and the processor cannot foresee their order.
    if (i + kPrefetchDistance < chares.size()) __builtin_prefetch(chares[i + kPrefetchDistance], 1);
    if (runtime_.stopped()) return;
    if (shares) {
      invoke_shared(*chare, *entry, arguments_of(*message), header.reply, shared_call);
    } else {
      invoke(*chare, *entry, arguments_of(*message), header.reply);
    }
  }
}

void Chares::Parts::send_after(Collection& collection, Message& message, EntryHeader header, BroadcastId id,
                               const Departure& departure) {
  const std::span<const std::byte> arguments = message.payload_span().subspan(sizeof header);
  int to = runtime_.pe();
  header.index = departure.index;
  header.move_or_source = 0;
  if (collection.find(departure.index) == nullptr) {
    const runtime::Whereabouts at =
        collection.elements_->directory.whereabouts(departure.index, departure.to_pe);
    to = at.pe;
    header.move_or_source = at.move;
  }
  if (header.reply.kind == ReplyTo::Kind::kGather) header.reply.id |= ReplyTo::kDirectly;
  const CopyOf copy_of{id.number, id.source, 0};
  MessagePtr copy = chares_.make_entry_message(header, sizeof copy_of + arguments.size());
  copy->envelope().handler = first_handler_ + kBroadcastCopy;
  copy->envelope().priority = message.envelope().priority;
  std::memcpy(copy->payload() + sizeof header, &copy_of, sizeof copy_of);
  std::ranges::copy(arguments, copy->payload() + sizeof header + sizeof copy_of);
  if (message.has_attachments()) message.share_attachments(*copy);
  runtime_.send(to, std::move(copy));
}

void Chares::Parts::on_broadcast_copy(MessagePtr message) {
  const EntryHeader header = read_header(*message);
  // The broadcast itself came in time.
  if (header.reply.kind == ReplyTo::Kind::kNone && chares_.collection(header.collection).destroyed_) return;
  ChareBase* const chare = find_ready_or_forward(message);
  if (chare == nullptr) return;
  CopyOf copy_of;
  Pup arguments = arguments_of(*message);
  arguments.expect(sizeof copy_of);
  std::memcpy(&copy_of, arguments.cursor(), sizeof copy_of);
  arguments.skip(sizeof copy_of);
  const BroadcastId id{copy_of.source, copy_of.number};
  if (id.number == 0 ||
      (id.source != kReductionSource && id.source >= static_cast<std::uint32_t>(runtime_.num_pes()))) {
    return fail_unfit(header);
  }
  const SeenBroadcasts& handled = chare->collection().elements_->handled;
  if (chare->seen_ == nullptr) {
    if (handled.contains(id)) return;  // it has run it here
    chare->seen_ = std::make_unique<SeenBroadcasts>(handled);
  }
  if (!chare->seen_->add(id)) return;
  if (handled.includes(*chare->seen_) && chare->seen_->includes(handled)) chare->seen_.reset();
  if (chare->collection().is_sparse() && !message->has_attachments()) {
    // At once: if the element were removed before a further message came, a new element of this index could get the call, and
    // would run the broadcast a second time.
    const EntryInfo* const entry = checked_entry(chare->collection(), header);
    if (entry != nullptr) invoke(*chare, *entry, Pup(arguments), header.reply);
    return;
  }
  // From here on it is a call of this element.
  MessagePtr call = chares_.make_entry_message(header, arguments.remaining_bytes());
  call->envelope().priority = message->envelope().priority;
  std::memcpy(call->payload() + sizeof header, arguments.cursor(), arguments.remaining_bytes());
  if (message->has_attachments()) message->share_attachments(*call);
  runtime_.send(runtime_.pe(), std::move(call));
}

}  // namespace weft::chare
