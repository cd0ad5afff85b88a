#include "machine/peer_memory/posted_receive.h"

#include "machine/peer_memory/mapping/process_copy.h"

namespace weft::machine {

using base::Status;
using base::StatusCode;

bool PostedReceive::copy_chunk() {
  if (cannot_read) return false;
  SharedCopy& shared = slot->shared;
  const SharedCopy::Chunk chunk = shared.take(message.number, buffer.size_bytes);
  if (chunk.size_bytes == 0) return false;
  const Status status =
      read_from_process(shared.source_pid, shared.source + chunk.offset_bytes,
                        static_cast<std::byte*>(buffer.data) + chunk.offset_bytes, chunk.size_bytes);
  if (status.ok()) {
    shared.add(chunk.size_bytes);
  } else {
    cannot_read = true;
    shared.give_back(message.number, chunk);
  }
  return true;
}

void PostedReceive::cancel() {
  if (!tagged.is_pending && !is_tagged_half_late && !is_offered) return;
  if (!withdraw()) return;
  if (tagged.is_pending) return owner->context.machine.cancel(&tagged);
  end_with(Status::cancelled(), 0);
}

Status PostedReceive::start_tagged_half() {
  is_tagged_half_late = false;
  Status status = owner->context.machine.tag_receive(message.tag, kFullTagMask, buffer, &tagged);
  tagged.is_pending = status.is_pending();
  return status;
}

void PostedReceive::tagged_ended(Status status, std::size_t size_bytes) {
  if (is_over()) return;
  // A message comes with its tag only if its sender does not copy it.
  const bool has_come = status.ok() || status.code() == StatusCode::kTruncated;
  if (has_come && bounced && bounced->copies_under_way > 0) {
    // An empty message: the send has failed.
    tagged_outcome.emplace(std::move(status), size_bytes);
  } else if (has_come || withdraw()) {
    end_with(std::move(status), size_bytes);
  } else {
    tagged_failure = std::move(status);
  }
}

void PostedReceive::tagged_half_has_ended(base::Completion* self, Status status, std::size_t size_bytes) {
  auto& half = *static_cast<Half*>(self);
  half.is_pending = false;
  half.receive->tagged_ended(std::move(status), size_bytes);
}

void PostedReceive::stream_is_done(base::Completion* self, Status status, std::size_t /*size_bytes*/) {
  auto& half = *static_cast<Half*>(self);
  PostedReceive& receive = *half.receive;
  half.is_pending = false;
  if (receive.owner == nullptr) {
    delete &receive;
    return;
  }
  receive.owner->stream_has_ended(receive, status);
}

}  // namespace weft::machine
