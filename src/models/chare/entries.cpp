// From a message to its entry method: finding the element, landing the buffers, and the call.
#include <cstring>
#include <memory>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"

#include "base/format.h"
#include "models/chare/parts.h"

namespace weft::chare {

using runtime::Message;
using runtime::MessagePtr;
using runtime::Registry;

namespace {

// The PE of an element, sent to a PE that addressed it elsewhere.
struct LocationNews {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::int32_t pe = 0;
  std::uint32_t move = 0;
};

constexpr std::size_t kPrefetchDistance = 8;

// Rare cases. They are out of line, so that the functions on the path of each message save no registers for them.

[[gnu::cold, gnu::noinline]] void fail_unfit(runtime::Runtime& runtime, const EntryHeader& header) {
  runtime.fail(
      base::format("a message to entry method {} of element {} of collection {:#x} does not fit that "
                   "collection; do all PEs run the same program?",
                   header.entry, header.index, header.collection));
}

// The arguments did not unpack. REQUIRES: called in a catch block.
[[gnu::cold, gnu::noinline]] void fail_unpacking(const ChareBase& chare, const EntryInfo& entry) {
  chare.runtime().fail_unawaited(std::current_exception(), chare.where(entry));
}

}  // namespace

MessagePtr Chares::make_entry_message(const EntryHeader& header, std::size_t argument_bytes) {
  MessagePtr message = Message::create(runtime_, entry_handler(), sizeof header + argument_bytes);
  std::memcpy(message->payload(), &header, sizeof header);
  return message;
}

MessagePtr Chares::make_broadcast_message(const EntryHeader& header, std::size_t argument_bytes) {
  MessagePtr message = make_entry_message(header, argument_bytes);
  message->envelope().handler = broadcast_handler();
  return message;
}

// The last known PE of the element.
inline int Chares::pe_of(Collection& collection, std::uint64_t index) const {
  if (collection.find(index) != nullptr) return runtime_.pe();
  return collection.elements_->directory.route(index, collection.home(index));
}

int Chares::send_entry(Collection& collection, std::uint64_t index, MessagePtr message) {
  collection.expect_alive();
  const int to = pe_of(collection, index);
  runtime_.send_call(to, std::move(message));
  return to;
}

void Chares::send_to_element(Collection& collection, std::uint64_t index, MessagePtr message) {
  runtime_.send(pe_of(collection, index), std::move(message));
}

void Chares::broadcast_entry(Collection& collection, MessagePtr message) {
  collection.expect_alive();
  runtime_.broadcast_call(std::move(message));
}

const EntryInfo* Chares::checked_entry(Collection& collection, const EntryHeader& header) {
  const EntryInfo* entry = Registry<EntryInfo>::find(header.entry);
  const ReplyTo& reply = header.reply;
  const bool reply_fits =
      reply.kind <= ReplyTo::Kind::kGather && reply.pe < static_cast<std::uint32_t>(runtime_.num_pes());
  if (entry != nullptr && entry->type == collection.type() && header.index < collection.shape().size() &&
      reply_fits) [[likely]]
    return entry;
  fail_unfit(runtime_, header);
  return nullptr;
}

void Chares::on_entry(MessagePtr message) {
  if (message->has_attachments() && invoke_if_placed(*message)) [[unlikely]]
    return;
  const EntryHeader header = read_header(*message);
  ChareBase* chare = find_or_forward(header, message);
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

runtime::Posting Chares::place(MessagePtr& message, std::span<runtime::Landing> landings) {
  using runtime::Posting;
  const EntryHeader header = read_header(*message);
  Collection& target = collection(header.collection);
  ChareBase* const chare = target.created_ ? target.find(header.index) : nullptr;
  if (chare == nullptr) return Posting::kHandle;  // on_entry keeps or forwards it; its chare places it later
  const EntryInfo* const entry = checked_entry(target, header);
  if (entry == nullptr) return Posting::kDrop;
  if (entry->place == nullptr) return Posting::kHandle;
  auto placement = std::make_shared<Placement>(Placement{*chare, *entry, header.reply, {}, nullptr});
  try {
    Pup arguments = arguments_of(*message);
    if (!entry->place(*chare, arguments, header.reply, landings, placement->kept)) return Posting::kDrop;
  } catch (...) {
    fail_unpacking(*chare, *entry);
    return Posting::kDrop;
  }
  if (entry->chooses_memory) placement->ranges = Placements::ranges_of(landings);
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
  chare->coroutine_started();  // the chare must stay with its buffers
  message->keep(std::move(placement));
  if (ranges.empty() || parts_->placements.occupy(ranges)) return Posting::kHandle;
  parts_->placements.wait(std::move(message), ranges, landings);
  return Posting::kDefer;
}

void Chares::place_dropped(Message& message) {
  const std::shared_ptr<void> kept = message.take_kept();
  if (kept == nullptr) return;
  auto& placement = *static_cast<Placement*>(kept.get());
  placement.chare.coroutine_ended();
  parts_->placements.release(placement.ranges);
}

bool Chares::invoke_if_placed(Message& message) {
  const std::shared_ptr<void> kept = message.take_kept();
  if (kept == nullptr) return false;
  Placement& placement = *static_cast<Placement*>(kept.get());
  placement.chare.coroutine_ended();
  try {
    placement.entry.invoke_placed(placement.chare, message, placement.reply, placement.kept.get());
  } catch (...) {  // the landed bytes do not unpack
    fail_unpacking(placement.chare, placement.entry);
  }
  parts_->placements.release(placement.ranges);
  return true;
}

ChareBase* Chares::find_or_forward(MessagePtr& message) {
  return find_or_forward(read_header(*message), message);
}

ChareBase* Chares::find_or_forward(const EntryHeader& header, MessagePtr& message) {
  Collection& target = collection(header.collection);
  ChareBase* const chare = target.created_ ? target.find(header.index) : nullptr;
  if (chare == nullptr) [[unlikely]]
    keep_or_forward(target, header, std::move(message));
  return chare;
}

void Chares::keep_or_forward(Collection& target, const EntryHeader& header, MessagePtr&& message) {
  if (target.destroyed_) {
    refuse(target, header, *message);
  } else if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
  } else {
    forward(target, header, std::move(message));
  }
}

void Chares::forward(Collection& target, const EntryHeader& header, MessagePtr message) {
  if (header.index >= target.shape().size()) {
    runtime_.fail(base::format("a message from PE {} is for element {} of a collection of shape {}",
                               message->envelope().source_pe, header.index, target.shape().to_string()));
    return;
  }
  int to = target.elements_->directory.route(header.index, target.home(header.index));
  if (to == runtime_.pe()) {
    runtime_.fail(base::format("{} is not on its home PE {}, and no PE has reported where it is",
                               target.element_name(header.index), to));
    return;
  }
  auto sender = static_cast<int>(message->envelope().source_pe);
  if (sender != runtime_.pe()) {
    LocationNews news{header.collection, header.index, to,
                      target.elements_->directory.known_move(header.index)};
    MessagePtr update = Message::pack(runtime_, first_handler_ + kLocation, news);
    update->envelope().flags |= runtime::kControlFlag;
    runtime_.send(sender, std::move(update));
  }
  runtime_.send(to, std::move(message));
}

void Chares::on_location(MessagePtr message) {
  LocationNews news;
  message->unpacker() | news;
  collection(news.collection).elements_->directory.learn(news.index, news.pe, news.move);
}

void Chares::invoke(ChareBase& chare, const EntryInfo& entry, Pup&& arguments, const ReplyTo& reply) {
  try {
    entry.invoke(chare, arguments, reply);
  } catch (...) {  // unpacking failed; exceptions of the method itself went to its caller
    fail_unpacking(chare, entry);
  }
}

void Chares::on_broadcast(MessagePtr message) {
  EntryHeader header = read_header(*message);
  Collection& target = collection(header.collection);
  if (target.destroyed_) return refuse(target, header, *message);
  if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
    return;
  }
  const EntryInfo* entry = checked_entry(target, header);
  if (entry == nullptr) return;
  if (header.reply.kind == ReplyTo::Kind::kGather && !parts_->is_given_up(header.reply, runtime_.pe())) {
    runtime_.reductions().open({header.reply.pe, kGatherScopes | header.reply.id}, target.shape().size(),
                               target.num_local(), true);
  }
  // The directory may change while methods run, so the elements are listed first.
  std::vector<ChareBase*> chares;
  chares.reserve(target.num_local());
  target.elements_->directory.for_each(
      [&chares](std::uint64_t, ChareBase& chare) { chares.push_back(&chare); });
  if (!message->attachments().empty()) return share_broadcast(std::move(message), header, chares);
  for (std::size_t i = 0; i < chares.size(); ++i) {
    ChareBase* const chare = chares[i];
    // The elements of a large collection do not fit in the cache, and the processor cannot foresee their order.
    if (i + kPrefetchDistance < chares.size()) __builtin_prefetch(chares[i + kPrefetchDistance], 1);
    if (runtime_.stopped()) return;
    invoke(*chare, *entry, arguments_of(*message), header.reply);
  }
}

}  // namespace weft::chare
