#include "machine/peer_memory/posted_receive.h"

#include "machine/peer_memory/mapping/process_copy.h"

namespace weft::machine {

using base::Status;
using base::StatusCode;

bool PostedReceive::copy_chunk() {
  if (posted == PostedHalf::kUnreadable) return false;
  SharedCopy& shared = slot->shared;
  const SharedCopy::Chunk chunk = shared.take(message.number, buffer.size_bytes);
  if (chunk.size_bytes == 0) return false;
  const Status status =
      read_from_process(shared.source_pid, shared.source + chunk.offset_bytes,
                        static_cast<std::byte*>(buffer.data) + chunk.offset_bytes, chunk.size_bytes);
  if (status.ok()) {
    shared.add(chunk.size_bytes);
  } else {
    advance(posted, PostedEvent::kReadFails);
    shared.give_back(message.number, chunk);
  }
  return true;
}

void PostedReceive::cancel() {
  const bool is_pending = tagged == TaggedHalf::kPending;
  if (!is_pending && tagged != TaggedHalf::kLate && tagged != TaggedHalf::kNone) return;
  if (!withdraw()) return;
  if (is_pending) return owner->context.machine.cancel(&tagged_done);
  end_with(Status::cancelled(), 0);
}

Status PostedReceive::start_tagged_half() {
  advance(tagged, TaggedEvent::kStart);
  return owner->context.machine.tag_receive(message.tag, kFullTagMask, buffer, &tagged_done);
}

void PostedReceive::tagged_ended(Status status, std::size_t size_bytes) {
  if (is_over()) return advance(tagged, TaggedEvent::kEnd);
  // A message comes with its tag only if its sender does not copy it.
  const bool has_come = status.ok() || status.code() == StatusCode::kTruncated;
  const bool is_copied_into = bounced && bounced->copies_under_way > 0;
  if (has_come ? !is_copied_into : withdraw()) {
    advance(tagged, TaggedEvent::kEnd);
    return end_with(std::move(status), size_bytes);
  }
  // Copies are under way. If the message has come it is empty, because the send has failed.
  advance(tagged, has_come ? TaggedEvent::kArrive : TaggedEvent::kFail);
  tagged_status = std::move(status);
  tagged_bytes = size_bytes;
}

void PostedReceive::tagged_half_has_ended(base::Completion* self, Status status, std::size_t size_bytes) {
  static_cast<Half*>(self)->receive->tagged_ended(std::move(status), size_bytes);
}

void PostedReceive::stream_is_done(base::Completion* self, Status status, std::size_t /*size_bytes*/) {
  PostedReceive& receive = *static_cast<Half*>(self)->receive;
  if (receive.owner == nullptr) {
    delete &receive;
    return;
  }
  receive.owner->stream_has_ended(receive, status);
}

}  // namespace weft::machine
