#include "machine/peer_memory/peer_copies.h"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/format.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;

// A copy under way into a peer's buffer. Deletes itself.
struct PeerCopies::Copy final : Completion, PeerOperation {
  Copy(PeerCopies& copies_in, const OutgoingStream& stream, StreamMessage message_in, MailboxSlot& slot_in,
       Imports::Import& import_in, std::size_t size_bytes_in, Completion* user)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<Copy> copy(static_cast<Copy*>(self));
          if (copy->copies != nullptr) copy->copies->copied(*copy, std::move(status));
        }),
        PeerOperation(user),
        copies(&copies_in),
        peer(stream.peer),
        owner(*stream.outbox->owner),
        message(message_in),
        slot(slot_in),
        import(import_in),
        size_bytes(size_bytes_in) {}
  void cancel() override {}  // the device uses the buffers

  PeerCopies* copies;  // null after close()
  int peer;
  const MailboxOwner& owner;
  StreamMessage message;
  MailboxSlot& slot;
  Imports::Import& import;
  std::size_t size_bytes;
};

// A send that waits for its stream. Deletes itself.
struct PeerCopies::LateSend final : Completion, PeerOperation {
  LateSend(PeerCopies& copies_in, const OutgoingStream& stream_in, StreamMessage message_in,
           const memory::ConstBuffer& source_in, Completion* user)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<LateSend> late(static_cast<LateSend*>(self));
          if (late->copies != nullptr) late->copies->stream_is_done(*late, std::move(status));
        }),
        PeerOperation(user),
        copies(&copies_in),
        stream(stream_in),
        message(message_in),
        source(source_in) {}
  void cancel() override {}  // a send that is cancelled would leave its receive without a message

  PeerCopies* copies;  // null after close()
  OutgoingStream stream;
  StreamMessage message;
  memory::ConstBuffer source;
};

// --- Mailboxes

bool PeerCopies::open_mailbox(int pe, Tag stream, std::uint64_t number, const MailboxFileName& name) {
  // A peer has kMailboxes at most: more are damage, and would grow the table.
  if (number >= kMailboxes || ++num_mailboxes_[pe] > kMailboxes) return true;
  auto [file, is_new] = files_.try_emplace(pe);
  if (is_new) {
    auto opened = MailboxFile::open(name);
    if (opened.ok()) {
      file->second = std::move(opened).value();
    } else if (open_failure_.ok()) {
      open_failure_ = opened.status();
    }
  }
  if (!file->second) return false;
  outboxes_[{pe, stream}] = {&file->second->mailbox(number), &file->second->owner()};
  return true;
}

void PeerCopies::forget(OutgoingStream& stream) {
  const auto node = outboxes_.extract({stream.peer, stream.name});
  if (!node.empty() && node.mapped().mailbox != nullptr) --num_mailboxes_[stream.peer];
  stream.outbox = nullptr;
}

// --- Sending

Status PeerCopies::start(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                         Completion* user) {
  if (stream.outbox == nullptr) stream.outbox = &outbox(stream.peer, stream.name);
  if (stream.outbox->mailbox != nullptr) {
    Found found = Found::kNothing;
    Status status = copy(found, stream, message, source, user);
    if (!status.ok()) return status;
    if (source.stream != nullptr) {
      auto late = std::make_unique<LateSend>(*this, stream, message, source, user);
      if (context_.wait_for_stream(source.place, source.stream, late.get())) {
        late_sends_.push_back(late.release());
        return Status::pending();
      }
      static_cast<void>(late->take_user());
    }
    if (found == Found::kNothing && is_slow(stream, source)) {
      waiting_.add({stream, message, source, user});
      return Status::pending();
    }
  } else if (slow_failure_.ok() && is_slow(stream, source)) {
    record_slow({stream, message, source, user}, "it was sent before the first receive of its stream");
  }
  return context_.machine.tag_send(stream.peer, message.tag, source, user);
}

Status PeerCopies::start_offered(OutgoingStream& stream, StreamMessage message,
                                 const memory::ConstBuffer& source, Completion* user) {
  if (!knows_mailbox(stream)) return {};
  Found found = Found::kNothing;
  return copy(found, stream, message, source, user);
}

bool PeerCopies::knows_mailbox(OutgoingStream& stream) {
  if (stream.outbox == nullptr) stream.outbox = &outbox(stream.peer, stream.name);
  return stream.outbox->mailbox != nullptr;
}

Status PeerCopies::start_announced(const WaitingSends::Send& send) {
  waiting_.add(send, /*is_announced=*/true);
  return Status::pending();
}

// Memory that the sender cannot export, or, as its last receive shows, memory of the receiver.
bool PeerCopies::is_slow(const OutgoingStream& stream, const memory::ConstBuffer& source) {
  const bool is_large = !source.place.is_host() && source.size_bytes >= WaitingSends::kLeastBytes;
  const Mailbox* const mailbox = stream.outbox->mailbox;
  const bool is_by_ring =
      mailbox != nullptr && mailbox->receives_by_ring.load(std::memory_order_relaxed) != 0;
  return is_large && (is_by_ring || (exports_.find(source) == nullptr && exports_.cannot_export(source)));
}

// The compare-and-swap comes first: it brings the cache line here once, in the state in which it stays.
Status PeerCopies::copy(Found& found, const OutgoingStream& stream, StreamMessage message,
                        const memory::ConstBuffer& source, Completion* user) {
  MailboxSlot& slot = stream.outbox->mailbox->slot(message.number);
  std::uint64_t posted = MailboxSlot::posted(message.number);
  if (!slot.word.compare_exchange_strong(posted, MailboxSlot::taken(message.number))) return {};
  found = Found::kPosted;
  Status status = start_copy(stream, message, slot, source, user);
  // If nothing was copied, the receiver must not wait for a copy.
  if (!status.is_pending()) slot.word.store(posted, std::memory_order_release);
  return status;
}

Status PeerCopies::start_copy(const OutgoingStream& stream, StreamMessage message, MailboxSlot& slot,
                              const memory::ConstBuffer& source, Completion* user) {
  const PeerBuffer buffer = slot.buffer;
  // If the sizes disagree, the receiver finds out by the tagged message.
  if (buffer.size_bytes != source.size_bytes || buffer.exported_bytes > kMaxExportedBytes) return {};
  if (buffer.place.is_host() != source.place.is_host()) return {};
  if (source.place.is_host()) {
    return shared_.start(stream, message, slot, files_.at(stream.peer)->name().file.pid, source, user);
  }
  if (buffer.exported_bytes == 0) {
    return bounces_.start(stream, message, *files_.at(stream.peer), buffer.offset_bytes, source, user);
  }
  const std::span exported(slot.exported.data(), buffer.exported_bytes);
  Imports::Import* const import = imports_.find(stream.peer, buffer, exported, source.place);
  if (import == nullptr) return {};
  const base::Result<memory::Buffer> destination = Imports::locate(*import, buffer);
  if (!destination.ok()) {
    return {StatusCode::kCorrupt, base::format("PE {} to PE {}: {}", context_.machine.pe(), stream.peer,
                                               destination.status().message())};
  }
  auto copy = std::make_unique<Copy>(*this, stream, message, slot, *import, source.size_bytes, user);
  if (!context_.began(context_.memory.copy(destination.value(), source, copy.get()))) {
    static_cast<void>(copy->take_user());
    return {};
  }
  copies_.push_back(copy.release());
  ++import->copies_under_way;
  context_.count(TransferType::kPeerCopy, TransferPath::kPeerMapped, source, user);
  return Status::pending();
}

void PeerCopies::stream_is_done(LateSend& late, Status status) {
  --context_.memory_waits;
  std::erase(late_sends_, &late);
  if (status.failed()) return late.complete(std::move(status), 0);
  Completion* const user = late.take_user();
  memory::ConstBuffer source = late.source;
  source.stream = nullptr;
  const WaitingSends::Send send{late.stream, late.message, source, user};
  Found found = Found::kNothing;
  status = copy(found, send.stream, send.message, source, user);
  if (status.is_pending()) return;
  if (status.ok()) return send_otherwise(send, found);
  user->function(user, std::move(status), 0);
}

void PeerCopies::send_otherwise(const WaitingSends::Send& send, Found found) {
  if (found == Found::kNothing && is_slow(send.stream, send.source)) return waiting_.add(send);
  context_.send_tagged(send.stream.peer, send.message.tag, send.source, send.user);
}

void PeerCopies::record_slow(const WaitingSends::Send& send, const char* why) {
  const bool is_mapped = exports_.find(send.source) != nullptr || !exports_.cannot_export(send.source);
  if (is_mapped || slow_failure_.failed()) return;
  slow_failure_ = {
      StatusCode::kUnsupported,
      base::format("a message of {} bytes of {} to PE {}, which other processes cannot map, went by the "
                   "transport's slow path: {}",
                   send.source.size_bytes, memory::place_name(send.source.place), send.stream.peer, why)};
}

void PeerCopies::answered(int pe, Tag stream, std::uint32_t message, bool is_posted) {
  if (std::optional<WaitingSends::Send> send = waiting_.take(pe, stream, message)) begin(*send, is_posted);
}

bool PeerCopies::poll_waiting() {
  std::vector<WaitingSends::Send> posted = waiting_.take_posted();
  for (WaitingSends::Send& send : posted) {
    // If this PE's device cannot write there, that of the receiver may read.
    const bool may_be_pulled = send.named != nullptr && !send.source.place.is_host();
    if (!may_be_pulled) {
      begin(send, true);
      continue;
    }
    Found found = Found::kNothing;
    Status status = copy(found, send.stream, send.message, send.source, send.user);
    if (status.is_pending()) continue;
    send.needs_answer = true;
    waiting_.add(send, /*is_announced=*/true);
  }
  return !posted.empty();
}

void PeerCopies::begin(WaitingSends::Send& send, bool is_posted) {
  if (send.movable != nullptr) send.source.data = send.movable->data;
  Status status;
  Found found = Found::kNothing;
  if (is_posted && send.stream.outbox->mailbox != nullptr)
    status = copy(found, send.stream, send.message, send.source, send.user);
  if (status.is_pending()) {
    if (send.movable != nullptr) {
      send.movable->is_fixed = true;
      *send.movable->read_bytes += send.source.size_bytes;
    }
    return;
  }
  // A receive that is posted no more was cancelled; its message goes with its tag, as on every path.
  if (status.ok()) {
    record_slow(send, "its receive is not of device memory that can be posted");
    if (send.movable != nullptr)
      return context_.send_movable(send.stream.peer, send.message.tag, *send.movable, send.user);
    return context_.send_tagged(send.stream.peer, send.message.tag, send.source, send.user);
  }
  context_.finish_later(send.user, std::move(status), 0);
}

void PeerCopies::begun(int pe, Tag stream, std::uint32_t message) {
  const std::optional<WaitingSends::Send> send = waiting_.take(pe, stream, message);
  if (!send) return;
  Mailbox* const mailbox = send->stream.outbox->mailbox;
  if (mailbox == nullptr || send->named == nullptr || !send->source.place.is_host())
    return refuse(*send, "begun");
  MailboxSlot& slot = mailbox->slot(message);
  if (slot.shared.is_of(message) && slot.buffer.size_bytes != send->source.size_bytes)
    return refuse(*send, "begun with another size");
  shared_.join(send->stream, send->message, slot, files_.at(pe)->name().file.pid, send->source, send->user);
}

// A peer claims what it cannot have done.
void PeerCopies::refuse(const WaitingSends::Send& send, const char* claim) {
  context_.finish_later(
      send.user,
      {StatusCode::kCorrupt,
       base::format("PE {} says that it has {} to copy message {} of PE {}, {} bytes, which was not named so",
                    send.stream.peer, claim, send.message.number, context_.machine.pe(),
                    send.source.size_bytes)},
      0);
}

void PeerCopies::pulled(int pe, Tag stream, std::uint32_t message) {
  const std::optional<WaitingSends::Send> send = waiting_.take(pe, stream, message);
  if (!send) return;
  if (send->named == nullptr || send->source.place.is_host()) return refuse(*send, "ended");
  context_.count(TransferType::kPeerCopy, TransferPath::kPulled, send->source, send->user);
  context_.finish_later(send->user, {}, send->source.size_bytes);
}

void PeerCopies::copied(Copy& copy, Status status) {
  --context_.memory_waits;
  std::erase(copies_, &copy);
  imports_.copy_done(copy.import);
  if (status.ok()) {
    copy.slot.outcome.store(MailboxSlot::done(copy.message.number), std::memory_order_release);
    wake(copy.peer, copy.owner);
  }
  const std::size_t size_bytes = status.ok() ? copy.size_bytes : 0;
  copy.complete(std::move(status), size_bytes);
}

void PeerCopies::wake(int pe, const MailboxOwner& owner) {
  // Orders the outcome before this look; PostedReceives::before_sleep() does it the other way round.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (owner.is_asleep.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  context_.control.send(pe, {.type = ControlMessage::Type::kWake, .file = {}});
}

// --- The end

void PeerCopies::begin_close() {
  bounces_.begin_close();
  waiting_.close();
  for (LateSend* late : std::exchange(late_sends_, {})) {
    --context_.memory_waits;
    late->copies = nullptr;
    late->complete(closed_before_sending(), 0);
  }
}

void PeerCopies::end_close() {
  shared_.close();
  for (Copy* copy : std::exchange(copies_, {})) {
    --context_.memory_waits;
    copy->copies = nullptr;
    copy->complete(closed_before_sending(), 0);
  }
  bounces_.end_close();
}

}  // namespace weft::machine
