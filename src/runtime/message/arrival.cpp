#include "runtime/message/arrival.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "machine/tag.h"
#include "memory/memory.h"

namespace weft::runtime {

using State = Message::Attached::State;

namespace {

// A host copy as short as this is over before another turn of the scheduler would be.
constexpr std::size_t kCopyAtOnceBytes = 32 * 1024;

// The memory layer and the machine know streams of device memory only.
memory::Buffer leading(const memory::Buffer& buffer, std::size_t size_bytes) {
  return {buffer.data, size_bytes, buffer.place, buffer.place.is_host() ? nullptr : buffer.stream};
}

}  // namespace

Attachments::Arrival::Arrival(Attachments& owner, MessagePtr message, bool wanted)
    : owner_(owner),
      runtime_(owner.runtime_),
      message_(std::move(message)),
      pieces_(message_->attachments().size()),
      is_receiving_(message_->attached_->state == State::kAwaited),
      wanted_(wanted),
      was_posted_(wanted) {}

void Attachments::Arrival::start(Attachments& owner, MessagePtr message, std::span<Landing> landings,
                                 bool wanted) {
  auto* arrival = new Arrival(owner, std::move(message), wanted);
  for (std::size_t i = 0; i < landings.size(); ++i) arrival->begin(i, landings[i]);
  if (--arrival->awaited_ == 0) arrival->all_ended();
}

void Attachments::Arrival::begin(std::size_t which, Landing& landing) {
  Message::Attached& attached = *message_->attached_;
  Piece& piece = pieces_[which];
  piece.arrival = this;
  piece.size_bytes = landing.size_bytes;
  piece.sender_kind = landing.place.kind;
  piece.room = std::move(landing.into);
  ++awaited_;
  memory::Place place = owner_.landing_place(landing.place.kind);
  if (!is_receiving_) {
    piece.source = std::move(attached.buffers[which]);
    copy_source(piece, place);
    return;
  }
  if (!piece.room) piece.room = allocate(piece.size_bytes, place);
  if (piece.room && piece.room.buffer().size_bytes < piece.size_bytes) {
    piece.temporary = allocate(piece.size_bytes, place);
    if (!piece.temporary) piece.room = Attachment();
  }
  if (!piece.room || piece.size_bytes == 0) return ended(piece, {});
  receive(piece, which);
}

Attachment Attachments::Arrival::allocate(std::size_t size_bytes, memory::Place place) {
  base::Result<Attachment> room = owner_.landing_pool_.allocate(size_bytes, place);
  if (room.ok()) return std::move(room).value();
  fail(room.status(), size_bytes);
  return {};
}

void Attachments::Arrival::receive(Piece& piece, std::size_t which) {
  Message::Attached& attached = *message_->attached_;
  machine::Machine& machine = runtime_.machine();
  const Attachment& into = piece.temporary ? piece.temporary : piece.room;
  memory::Buffer buffer = leading(into.buffer(), piece.size_bytes);
  piece.receiving = true;
  base::Status status =
      attached.tags.empty()
          ? machine.am_receive(std::move(attached.payload), buffer, &piece)
          : machine.tag_receive(attached.tags[which], machine::kFullTagMask, buffer, &piece);
  if (!status.is_pending()) received(piece, std::move(status), piece.size_bytes);
}

void Attachments::Arrival::copy_source(Piece& piece, memory::Place place) {
  const bool has_landed = message_->attached_->state == State::kLanded;
  if (!piece.room && has_landed && piece.source.buffer().place.kind == place.kind) {
    piece.room = std::move(piece.source);
    return ended(piece, {});
  }
  if (!piece.room) piece.room = allocate(piece.size_bytes, place);
  if (!piece.room) return ended(piece, {});
  copy(piece, piece.source);
}

void Attachments::Arrival::copy(Piece& piece, const Attachment& from) {
  const std::size_t size_bytes = std::min(piece.size_bytes, piece.room.buffer().size_bytes);
  const memory::Buffer to = leading(piece.room.buffer(), size_bytes);
  const memory::Buffer source = leading(from.buffer(), size_bytes);
  if (size_bytes == 0 || to.data == source.data) return ended(piece, {});
  if (to.place.is_host() && source.place.is_host() && size_bytes <= kCopyAtOnceBytes) {
    std::memcpy(to.data, source.data, size_bytes);
    return ended(piece, {});
  }
  base::Status status = runtime_.memory().copy(to, source, &piece);
  if (!status.is_pending()) ended(piece, std::move(status));
}

void Attachments::Arrival::Piece::ended(base::Completion* completion, base::Status status,
                                        std::size_t size_bytes) {
  auto& piece = *static_cast<Piece*>(completion);
  if (piece.receiving) {
    piece.arrival->received(piece, std::move(status), size_bytes);
  } else {
    piece.arrival->ended(piece, std::move(status));
  }
}

void Attachments::Arrival::received(Piece& piece, base::Status status, std::size_t size_bytes) {
  piece.receiving = false;
  if (status.ok() && size_bytes == 0) {
    wanted_ = false;  // the sender has revoked it, and says why where it is
  } else if (status.ok() && size_bytes != piece.size_bytes) {
    status = {base::StatusCode::kCorrupt, fmt::format("{} bytes came", size_bytes)};
  } else if (status.ok() && piece.temporary) {
    return copy(piece, piece.temporary);
  }
  ended(piece, std::move(status));
}

void Attachments::Arrival::ended(Piece& piece, base::Status status) {
  if (status.failed()) fail(std::move(status), piece.size_bytes);
  if (--awaited_ == 0) all_ended();
}

void Attachments::Arrival::fail(base::Status status, std::size_t size_bytes) {
  if (failed_) return;
  failed_ = true;
  // The sender is here and is told, if it asked to be.
  Message::Attached& attached = *message_->attached_;
  if (attached.is_reported()) {
    attached.failure = std::move(status);
  } else if (!runtime_.exiting()) {
    runtime_.fail(
        fmt::format("a buffer of {} bytes that came with a message from PE {} could not be received: {}",
                    size_bytes, message_->envelope().source_pe, status.to_string()));
  }
}

// May be called by the machine, which no exception passes.
void Attachments::Arrival::forward() {
  try {
    for (const Piece& piece : pieces_) message_->attached_->first_kinds.push_back(piece.sender_kind);
    runtime_.forward_broadcast(*message_);
  } catch (const std::bad_alloc&) {
    runtime_.fail(fmt::format("no memory to send on a broadcast from PE {}; send in smaller parts",
                              message_->envelope().source_pe));
  }
}

void Attachments::Arrival::all_ended() {
  std::unique_ptr<Arrival> self(this);
  Message::Attached& attached = *message_->attached_;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    if (piece.room.buffer().size_bytes > piece.size_bytes) piece.room.shorten(piece.size_bytes);
    attached.buffers[i] = std::move(piece.room);
    piece.source = Attachment();
  }
  attached.state = State::kLanded;
  attached.sender_kind.reset();
  attached.tags.clear();
  attached.end_sending(attached.failure);
  if (wanted_ && !failed_) {
    if ((message_->envelope().flags & kBroadcastFlag) != 0) forward();
    runtime_.enqueue(message_.release());
  } else {
    owner_.drop(*message_, was_posted_);
  }
}

}  // namespace weft::runtime
