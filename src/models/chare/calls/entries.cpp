// From a message to its entry method: finding the element, landing the buffers, and the call.
#include <cstring>
#include <memory>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

MessagePtr Chares::make_entry_message(const EntryHeader& header, std::size_t argument_bytes) {
  MessagePtr message = Message::create(runtime_, entry_handler(), sizeof header + argument_bytes);
  std::memcpy(message->payload(), &header, sizeof header);
  return message;
}

// The last known PE of the element.
inline int Chares::Parts::pe_of(Collection& collection, std::uint64_t index, Message& message) const {
  if (collection.find(index) != nullptr) return runtime_.pe();
  const runtime::Whereabouts at = collection.elements_->directory.whereabouts(index, collection.home(index));
  if (at.move != 0) [[unlikely]]
    note_move(message, at.move);
  return at.pe;
}

void Chares::Parts::note_move(Message& message, std::uint32_t move) {
  EntryHeader header = read_header(message);
  header.move_or_source = move;
  std::memcpy(message.payload(), &header, sizeof header);
}

namespace {

// For load balancing: the running element calls that one.
[[gnu::cold, gnu::noinline]] void count_call(const Collection& collection, std::uint64_t index,
                                             Message& message) {
  std::uint64_t size_bytes = message.payload_bytes() - sizeof(EntryHeader);
  for (const runtime::Attachment& attachment : message.attachments()) {
    size_bytes += attachment.buffer().size_bytes;
  }
  message.runtime().meter().count_message({collection.id(), index}, size_bytes);
}

}  // namespace

int Chares::send_entry(Collection& collection, std::uint64_t index, MessagePtr message) {
  collection.expect_alive();
  if (runtime_.meter().counts_messages()) [[unlikely]]
    count_call(collection, index, *message);
  const int to = parts_->pe_of(collection, index, *message);
  runtime_.send_call(to, std::move(message));
  return to;
}

runtime::OperationState* Chares::send_call_message(Collection& collection, std::uint64_t index,
                                                   MessagePtr message, bool has_payload,
                                                   IsForwarded is_forwarded) {
  runtime::OperationState* const sending =
      has_payload ? runtime::report_sending(runtime_, *message) : nullptr;
  return runtime::send_reported(sending, [&] {
    if (is_forwarded == IsForwarded::kYes) {
      send_to_element(collection, index, std::move(message));
    } else {
      send_entry(collection, index, std::move(message));
    }
  });
}

void Chares::send_to_element(Collection& collection, std::uint64_t index, MessagePtr message) {
  const int to = parts_->pe_of(collection, index, *message);
  runtime_.send(to, std::move(message));
}

// Rare cases. They are out of line, so that the functions on the path of each message save no registers for them.

void Chares::Parts::fail_unfit(const EntryHeader& header) {
  runtime_.fail(
      base::format("a message to entry method {} of element {} of collection {:#x} does not fit that "
                   "collection; do all PEs run the same program?",
                   header.entry, header.index, header.collection));
}

void fail_unpacking(const ChareBase& chare, const EntryInfo& entry) {
  chare.runtime().fail_unawaited(std::current_exception(), chare.where(entry));
}

const EntryInfo* Chares::Parts::checked_entry(Collection& collection, const EntryHeader& header) {
  const EntryInfo* entry = Registry<EntryInfo>::find(header.entry);
  if (entry != nullptr && entry->type == collection.type() && header.index < collection.shape().size() &&
      header.reply.is_valid(runtime_.num_pes())) [[likely]]
    return entry;
  fail_unfit(header);
  return nullptr;
}

void Chares::Parts::on_entry(MessagePtr message) {
  if (message->has_attachments() && invoke_if_placed(*message)) [[unlikely]]
    return;
  const EntryHeader header = read_header(*message);
  ChareBase* chare = find_by_header(header, message);
  if (chare == nullptr) [[unlikely]]
    return;
  const EntryInfo* entry = checked_entry(chare->collection(), header);
  if (entry == nullptr) [[unlikely]]
    return;
  if (message->has_attachments() && entry->place != nullptr) [[unlikely]] {
    // The message arrived before the chare and has landed. Sent again, it lands where the chare chooses.
    return runtime_.send(runtime_.pe(), std::move(message));
  }
  invoke(*chare, *entry, arguments_of(*message), header.reply);
}

runtime::Posting Chares::Parts::place(MessagePtr& message,
                                      std::span<runtime::ReceiveBuffer> receive_buffers) {
  using runtime::Posting;
  const EntryHeader header = read_header(*message);
  Collection& target = chares_.collection(header.collection);
  ChareBase* const chare = target.created_ ? target.find(header.index) : nullptr;
  if (chare == nullptr) return Posting::kHandle;  // on_entry keeps or forwards it; its chare places it later
  const EntryInfo* const entry = checked_entry(target, header);
  if (entry == nullptr) return Posting::kDrop;
  if (entry->place == nullptr) return Posting::kHandle;
  auto placement = std::make_shared<Placement>(Placement{*chare, *entry, header.reply, {}, nullptr});
  try {
    Pup arguments = arguments_of(*message);
    if (!entry->place(*chare, arguments, header.reply, receive_buffers, placement->kept))
      return Posting::kDrop;
  } catch (...) {
    fail_unpacking(*chare, *entry);
    return Posting::kDrop;
  }
  if (entry->chooses_memory) placement->ranges = Placements::ranges_of(receive_buffers);
  const Placements::Ranges& ranges = placement->ranges;
  if (Placements::overlap_one_another(ranges)) {
    send_error(*chare, header.reply, *entry,
               std::make_exception_ptr(base::Error(
                   base::StatusCode::kInvalidArgument,
                   base::format("the post entry method of {} has two buffers of one call land in memory that "
                                "overlaps; give each its own",
                                chare->where(*entry)))));
    return Posting::kDrop;
  }
  chare->landing_started();  // the chare must stay with its buffers
  message->keep(std::move(placement));
  if (ranges.empty() || placements.occupy(ranges)) return Posting::kHandle;
  placements.wait(std::move(message), ranges, receive_buffers);
  return Posting::kDefer;
}

void Chares::Parts::place_dropped(Message& message) {
  const std::shared_ptr<void> kept = message.take_kept();
  if (kept == nullptr) return;
  auto& placement = *static_cast<Placement*>(kept.get());
  placement.chare.landing_ended();
  placements.release(placement.ranges);
}

bool Chares::Parts::invoke_if_placed(Message& message) {
  const std::shared_ptr<void> kept = message.take_kept();
  if (kept == nullptr) return false;
  Placement& placement = *static_cast<Placement*>(kept.get());
  placement.chare.landing_ended();
  try {
    placement.entry.invoke_placed(placement.chare, message, placement.reply, placement.kept.get());
  } catch (...) {  // the landed bytes do not unpack
    fail_unpacking(placement.chare, placement.entry);
  }
  placements.release(placement.ranges);
  return true;
}

ChareBase* Chares::find_or_forward(MessagePtr& message) {
  const EntryHeader header = read_header(*message);
  if (ChareBase* const chare = collection(header.collection).find_constructed(header.index)) return chare;
  return parts_->find_by_header(header, message);
}

ChareBase* Chares::Parts::find_ready_or_forward(MessagePtr& message) {
  return find_by_header(read_header(*message), message);
}

ChareBase* Chares::Parts::find_by_header(const EntryHeader& header, MessagePtr& message) {
  Collection& target = chares_.collection(header.collection);
  ChareBase* const chare = target.created_ ? target.find(header.index) : nullptr;
  if (chare == nullptr) [[unlikely]]
    keep_or_forward(target, header, std::move(message));
  return chare;
}

void Chares::Parts::keep_or_forward(Collection& target, const EntryHeader& header, MessagePtr&& message) {
  if (target.destroyed_) {
    refuse(target, header, *message);
  } else if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
  } else {
    forward(target, header, std::move(message));
  }
}

void Chares::Parts::forward(Collection& target, EntryHeader header, MessagePtr message) {
  if (header.index >= target.shape().size()) {
    runtime_.fail(base::format("a message from PE {} is for element {} of a collection of shape {}",
                               message->envelope().source_pe, header.index, target.shape().to_string()));
    return;
  }
  if (target.elements_->being_created.contains(header.index)) {
    return hold(target, header.index, std::move(message));
  }
  const runtime::Whereabouts at =
      target.elements_->directory.whereabouts(header.index, target.home(header.index));
  // The message has overtaken the element, which the sender knows to be here or to come.
  if (header.move_or_source > at.move) return hold(target, header.index, std::move(message));
  if (at.pe == runtime_.pe()) {
    if (target.is_sparse()) return sets->has_no_element(target, header, std::move(message));
    if (runtime_.losses().count() > 0) return losses->answer(header, *message);
    runtime_.fail(base::format("{} is not on its home PE {}, and no PE has reported where it is",
                               target.element_name(header.index), at.pe));
    return;
  }
  const auto sender = static_cast<int>(message->envelope().source_pe);
  if (sender != runtime_.pe()) send_news(target, header.index, sender, at.pe, at.move);
  if (header.reply.kind == ReplyTo::Kind::kGather && !header.reply.is_direct()) {
    // Its part of a broadcast, see share_broadcast(). This PE does not wait for its outcome any more.
    runtime_.reductions().contributor_left({header.reply.pe, kGatherScopes | header.reply.id}, 0);
    header.reply.id |= ReplyTo::kDirectly;
  }
  header.move_or_source = at.move;
  std::memcpy(message->payload(), &header, sizeof header);
  runtime_.send(at.pe, std::move(message));
}

}  // namespace weft::chare
