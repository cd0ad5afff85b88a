#include "weft/runtime/message.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "runtime/message/attached.h"

namespace weft::runtime {

namespace {

// Room for the envelope, the header of an entry method and a few arguments.
constexpr std::size_t kSmallMessageBytes = 256;

}  // namespace

MessagePtr Message::create(Scheduler& scheduler, HandlerId handler, std::size_t payload_bytes) {
  if (scheduler.message_observer() != nullptr) [[unlikely]]
    return create_traced(scheduler, handler, payload_bytes);
  MessagePtr message = for_arrival(scheduler, payload_bytes);
  message->envelope_.handler = handler;
  message->envelope_.source_pe = static_cast<std::uint32_t>(scheduler.pe());
  message->envelope_.root_pe = message->envelope_.source_pe;
  return message;
}

MessagePtr Message::for_arrival(Scheduler& scheduler, std::size_t payload_bytes) {
  void* block = scheduler.pool().allocate_mostly<kSmallMessageBytes>(sizeof(Message) + payload_bytes);
  return MessagePtr(new (block) Message(scheduler, payload_bytes));
}

MessagePtr Message::create_traced(Scheduler& scheduler, HandlerId handler, std::size_t payload_bytes) {
  MessagePtr message = for_arrival(scheduler, payload_bytes + kTraceBytes);
  message->envelope_.handler = handler;
  message->envelope_.source_pe = static_cast<std::uint32_t>(scheduler.pe());
  message->envelope_.root_pe = message->envelope_.source_pe;
  message->envelope_.flags = kTracedFlag;
  message->payload_bytes_ = payload_bytes;
  message->trailer_bytes_ = kTraceBytes;
  const std::uint64_t id = scheduler.next_trace_id();
  std::memcpy(message->payload() + payload_bytes, &id, sizeof id);
  return message;
}

bool Message::split_trace() {
  if (payload_bytes_ < kTraceBytes) return false;
  payload_bytes_ -= kTraceBytes;
  trailer_bytes_ = kTraceBytes;
  return true;
}

void MessageRelease::operator()(Message* message) const {
  if (--message->references_ > 0) return;
  if (message->attached_ != nullptr) [[unlikely]]
    return message->release_attached();
  BlockPool& pool = message->scheduler_->pool();
  std::size_t size_bytes = sizeof(Message) + message->payload_bytes_ + message->trailer_bytes_;
  message->~Message();
  pool.deallocate_mostly<kSmallMessageBytes>(message, size_bytes);
}

void Message::release_attached() {
  references_ = 1;
  MessagePtr last(this);
  if (attached_->on_release != nullptr) return std::exchange(attached_->on_release, nullptr)(std::move(last));
  attached_.reset();  // `last` frees the block
}

void AttachedRelease::operator()(Attached* attached) const { delete attached; }

Attached& Message::attached() {
  if (attached_ == nullptr) attached_.reset(new Attached);
  return *attached_;
}

std::span<Attachment> Message::attached_list() const { return attached_->buffers; }

void Message::attach(Attachment attachment) {
  std::vector<Attachment>& buffers = attached().buffers;
  if (buffers.size() == kMaxAttachments) {
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("at most {} buffers can travel with one message; send more messages", kMaxAttachments));
  }
  buffers.push_back(std::move(attachment));
}

void Message::report_sending(base::Completion* sent) { attached().sending = sent; }

void Message::share_attachments(Message& other) {
  attached_->report_jointly(*scheduler_);
  Attached& theirs = other.attached();
  theirs.buffers.reserve(attached_->buffers.size());
  for (Attachment& one : attached_->buffers) theirs.buffers.push_back(one.share());
  theirs.joint = attached_->joint;
  theirs.first_kinds = attached_->first_kinds;
}

bool Message::owns_attachments() const {
  if (attached_ == nullptr || attached_->state != Attached::BufferState::kLanded) return false;
  return std::ranges::none_of(attached_->buffers, &Attachment::is_shared);
}

bool Message::was_posted() const { return attached_ != nullptr && attached_->posted; }

void Message::keep(std::shared_ptr<void> kept) { attached().kept = std::move(kept); }

std::shared_ptr<void> Message::take_kept() {
  return attached_ == nullptr ? nullptr : std::exchange(attached_->kept, nullptr);
}

}  // namespace weft::runtime
