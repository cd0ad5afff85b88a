#include "runtime/message/arrival.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "base/format.h"
#include "machine/peer_memory/peer_memory.h"
#include "machine/tag.h"
#include "memory/memory.h"
#include "runtime/losses/losses.h"
#include "runtime/message/boundary.h"
#include "runtime/message/payload_tag.h"

namespace weft::runtime {

namespace {

// A host copy as short as this is over before another turn of the scheduler would be.
constexpr std::size_t kCopyAtOnceBytes = 32 * 1024;

// The memory layer and the machine know streams of device memory only.
memory::Buffer leading(const memory::Buffer& buffer, std::size_t size_bytes) {
  return {buffer.data, size_bytes, buffer.place, buffer.place.is_host() ? nullptr : buffer.stream};
}

// Device memory and large host memory land by way of the machine's peer memory.
base::Status receive_tagged(machine::Machine& machine, const Attached& attached, std::size_t which,
                            memory::Kind sender_kind, const memory::Buffer& buffer, base::Completion* done) {
  const machine::Tag tag = attached.tags[which];
  const bool send_waits = attached.send_waits[which];
  const bool is_small = buffer.size_bytes < machine::PeerMemory::kLeastWaitingBytes;
  if (!send_waits && sender_kind == memory::Kind::kHost && is_small) [[likely]]
    return machine.tag_receive(tag, machine::kFullTagMask, buffer, done);
  const bool is_named = !attached.source_names.empty() && attached.source_names[which].has_value();
  return machine.peer_memory().receive_announced(
      static_cast<int>(payload_source(tag)), payload_stream(tag), {payload_counter(tag), tag}, send_waits,
      is_named ? &*attached.source_names[which] : nullptr, buffer, done);
}

}  // namespace

Arrival::Arrival(Owner& owner, ReceiveBufferPool& pool, MessagePtr message, bool wanted)
    : owner_(owner),
      scheduler_(message->scheduler()),
      pool_(pool),
      message_(std::move(message)),
      attached_(message_->attached()),
      pieces_(message_->attachments().size()),
      is_receiving_(attached_.state == Attached::BufferState::kAwaited),
      wanted_(wanted) {
  if (scheduler_.losses().are_survived()) owner_.begun(*this);
}

Arrival::~Arrival() {
  if (scheduler_.losses().are_survived()) owner_.over(*this);
}

Arrival::Landed Arrival::start(Owner& owner, ReceiveBufferPool& pool, MessagePtr message,
                               std::span<ReceiveBuffer> receive_buffers, bool wanted) {
  auto* arrival = new Arrival(owner, pool, std::move(message), wanted);
  for (std::size_t i = 0; i < receive_buffers.size(); ++i) arrival->begin(i, receive_buffers[i]);
  if (--arrival->awaited_ > 0) return {};  // the last piece frees it
  std::unique_ptr<Arrival> ended(arrival);
  return ended->finish();
}

void Arrival::begin(std::size_t which, ReceiveBuffer& receive_buffer) {
  Piece& piece = pieces_[which];
  piece.arrival = this;
  piece.size_bytes = receive_buffer.size_bytes;
  piece.sender_kind = receive_buffer.place.kind;
  piece.room = std::move(receive_buffer.into);
  ++awaited_;
  memory::Place place = pool_.place_for(receive_buffer.place.kind);
  if (!is_receiving_) {
    piece.source = std::move(attached_.buffers[which]);
    copy_source(piece, place);
    return;
  }
  if (comes_from_lost()) [[unlikely]] {
    failed_ = true;
    return ended({}, piece.size_bytes);
  }
  if (is_to_be_discarded(piece)) {
    piece.is_discarded = true;
    return receive(piece, which);
  }
  if (!piece.room) piece.room = allocate(piece.size_bytes, place);
  if (piece.room && piece.room.buffer().size_bytes < piece.size_bytes) {
    piece.temporary = allocate(piece.size_bytes, place);
    if (!piece.temporary) piece.room = Attachment();
  }
  if (!piece.room || piece.size_bytes == 0) return ended({}, piece.size_bytes);
  receive(piece, which);
}

// Buffers of device memory and payloads of active messages land whole, because their senders wait for that.
bool Arrival::is_to_be_discarded(const Piece& piece) const {
  if (piece.size_bytes <= kMostUnwantedBytes || piece.sender_kind != memory::Kind::kHost ||
      attached_.tags.empty())
    return false;
  return piece.room ? piece.room.buffer().size_bytes < piece.size_bytes : !wanted_;
}

Attachment Arrival::allocate(std::size_t size_bytes, memory::Place place) {
  base::Result<Attachment> room = pool_.allocate(size_bytes, place);
  if (room.ok()) return std::move(room).value();
  fail(room.status(), size_bytes);
  return {};
}

void Arrival::receive(Piece& piece, std::size_t which) {
  machine::Machine& machine = scheduler_.machine();
  const Attachment& into = piece.temporary ? piece.temporary : piece.room;
  const memory::Buffer buffer = piece.is_discarded ? memory::Buffer{&piece.discarded, 1, {}, nullptr}
                                                   : leading(into.buffer(), piece.size_bytes);
  piece.receiving = true;
  base::Status status = attached_.tags.empty()
                            ? machine.am_receive(std::move(attached_.payload), buffer, &piece)
                            : receive_tagged(machine, attached_, which, piece.sender_kind, buffer, &piece);
  if (!status.is_pending()) received(piece, std::move(status), piece.size_bytes);
}

void Arrival::copy_source(Piece& piece, memory::Place place) {
  const bool has_landed = attached_.state == Attached::BufferState::kLanded || piece.source.is_given_away();
  if (!piece.room && has_landed && piece.source.buffer().place.kind == place.kind) {
    piece.room = std::move(piece.source);
    return ended({}, piece.size_bytes);
  }
  if (!piece.room) piece.room = allocate(piece.size_bytes, place);
  if (!piece.room) return ended({}, piece.size_bytes);
  copy(piece, piece.source);
}

void Arrival::copy(Piece& piece, const Attachment& from) {
  const std::size_t size_bytes = std::min(piece.size_bytes, piece.room.buffer().size_bytes);
  const memory::Buffer to = leading(piece.room.buffer(), size_bytes);
  const memory::Buffer source = leading(from.buffer(), size_bytes);
  if (size_bytes == 0 || to.data == source.data) return ended({}, piece.size_bytes);
  if (to.place.is_host() && source.place.is_host() && size_bytes <= kCopyAtOnceBytes) {
    std::memcpy(to.data, source.data, size_bytes);
    return ended({}, piece.size_bytes);
  }
  base::Status status = scheduler_.memory().copy(to, source, &piece);
  if (!status.is_pending()) ended(std::move(status), piece.size_bytes);
}

void Arrival::Piece::ended(base::Completion* completion, base::Status status, std::size_t size_bytes) {
  auto& piece = *static_cast<Piece*>(completion);
  Arrival* arrival = piece.arrival;
  at_boundary(arrival->scheduler_, "the landing of a message's buffer", [&] {
    if (piece.receiving) {
      arrival->received(piece, std::move(status), size_bytes);
    } else {
      arrival->ended(std::move(status), piece.size_bytes);
    }
    if (arrival->awaited_ == 0) arrival->end();
  });
}

void Arrival::received(Piece& piece, base::Status status, std::size_t size_bytes) {
  piece.receiving = false;
  if (status.ok() && size_bytes == 0) {
    wanted_ = false;  // the sender has revoked it, and says why where it is
  } else if (piece.is_discarded && status.code() == base::StatusCode::kTruncated) {
    status = {};
  } else if (status.ok() && size_bytes != piece.size_bytes) {
    status = {base::StatusCode::kCorrupt, base::format("{} bytes came", size_bytes)};
  } else if (status.ok() && piece.temporary) {
    return copy(piece, piece.temporary);
  }
  ended(std::move(status), piece.size_bytes);
}

void Arrival::ended(base::Status status, std::size_t size_bytes) {
  if (status.failed()) fail(std::move(status), size_bytes);
  --awaited_;
}

void Arrival::fail(base::Status status, std::size_t size_bytes) {
  if (failed_) return;
  failed_ = true;
  // The sender is here and is told, if it asked to be.
  if (attached_.is_reported()) {
    attached_.failure = std::move(status);
  } else if (!scheduler_.exiting() && !comes_from_lost() &&
             !scheduler_.losses().explain(source_pe(), status)) {
    scheduler_.fail(
        base::format("a buffer of {} bytes that came with a message from PE {} could not be received: {}",
                     size_bytes, message_->envelope().source_pe, status.to_string()));
  }
}

int Arrival::source_pe() const {
  const std::uint32_t source = message_->envelope().source_pe;
  return source < static_cast<std::uint32_t>(scheduler_.num_pes()) ? static_cast<int>(source) : -1;
}

bool Arrival::comes_from_lost() const {
  return scheduler_.losses().count() > 0 && source_pe() >= 0 && scheduler_.losses().is_lost(source_pe());
}

void Arrival::cancel() {
  ++awaited_;
  for (Piece& piece : pieces_) {
    if (piece.receiving) scheduler_.machine().cancel(&piece);
  }
  if (--awaited_ == 0) end();
}

void Arrival::end() {
  std::unique_ptr<Arrival> self(this);
  Landed landed = self->finish();
  self->owner_.landed(std::move(landed.message), landed.complete);
}

Arrival::Landed Arrival::finish() {
  const bool is_broadcast = (message_->envelope().flags & kBroadcastFlag) != 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    if (piece.room.buffer().size_bytes > piece.size_bytes) piece.room.shorten(piece.size_bytes);
    if (piece.is_discarded) piece.room = Attachment();
    attached_.buffers[i] = std::move(piece.room);
    piece.source = Attachment();
    if (is_broadcast) attached_.first_kinds.push_back(piece.sender_kind);
  }
  attached_.state = Attached::BufferState::kLanded;
  attached_.sender_kind.reset();
  attached_.tags.clear();
  attached_.send_waits.clear();
  attached_.source_names.clear();
  attached_.end_sending(attached_.failure);
  return {std::move(message_), wanted_ && !failed_};
}

}  // namespace weft::runtime
