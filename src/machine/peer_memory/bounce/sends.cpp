#include "machine/peer_memory/bounce/sends.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/format.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;

namespace {

// How long close() lets receivers make room.
constexpr std::chrono::milliseconds kRoomLimit{200};

}  // namespace

struct BounceSends::Send final : PeerOperation {
  // Waits for the work on the source's stream. Deletes itself.
  struct StreamWait final : Completion {
    StreamWait(BounceSends& sends_in, Send& send_in)
        : Completion([](Completion* self, Status status, std::size_t) {
            const std::unique_ptr<StreamWait> wait(static_cast<StreamWait*>(self));
            if (wait->send != nullptr) wait->sends->stream_is_done(*wait->send, std::move(status));
          }),
          sends(&sends_in),
          send(&send_in) {}
    BounceSends* sends;
    Send* send;  // null after close()
  };

  Send(Ring& ring_in, const OutgoingStream& stream, StreamMessage message_in, Imports::Import& import_in,
       const memory::Buffer& bounce_in, const memory::ConstBuffer& source_in, Completion* user)
      : PeerOperation(user),
        ring(ring_in),
        stream(stream.name),
        message(message_in),
        import(import_in),
        bounce(bounce_in),
        source(source_in) {
    source.stream = nullptr;
  }
  void cancel() override {}  // a send that is cancelled would leave its receive without a message

  Ring& ring;
  Tag stream;
  StreamMessage message;
  Imports::Import& import;
  memory::Buffer bounce;
  memory::ConstBuffer source;
  std::shared_ptr<Exports::Export> exported;  // not null: the receiver may copy the source itself
  StreamWait* stream_wait = nullptr;
  bool is_queued = false;   // in the ring's queue
  bool is_offered = false;  // in entry `offer`
  std::uint64_t offer = 0;
  bool is_counted = false;
  std::size_t issued_bytes = 0;
  int copies_in_flight = 0;
  Status failure;
};

// A copy into a bounce buffer. Deletes itself.
struct BounceSends::Chunk final : Completion {
  Chunk(BounceSends& sends_in, Send& send_in, std::uint64_t entry_in)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<Chunk> chunk(static_cast<Chunk*>(self));
          if (chunk->sends != nullptr) chunk->sends->copied(*chunk, std::move(status));
        }),
        sends(&sends_in),
        send(&send_in),
        entry(entry_in) {}
  BounceSends* sends;  // null after close()
  Send* send;
  std::uint64_t entry;
};

// The sender's side of a ring.
struct BounceSends::Ring {
  // The part of the bounce buffer that an entry uses, or the send whose source it offers.
  struct Used {
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    Send* offered = nullptr;
  };

  BounceEntry& entry(std::uint64_t number) const { return shared->entry(number); }
  bool has_free_entry() const {
    return used.size() < kBounceEntries &&
           entry(next).word.load(std::memory_order_acquire) == BounceEntry::free_for(next);
  }
  bool is_oldest_free() const {
    const std::uint64_t oldest = next - used.size();
    return entry(oldest).word.load(std::memory_order_acquire) ==
           BounceEntry::free_for(oldest + kBounceEntries);
  }
  // A part of the bounce buffer that no entry uses. Parts are used in a circle.
  std::optional<std::size_t> find_room(std::size_t size_bytes) {
    const auto oldest = std::ranges::find_if(used, [](const Used& one) { return one.size_bytes > 0; });
    if (oldest == used.end()) end = 0;
    if (oldest != used.end() && end <= oldest->offset_bytes) {
      if (size_bytes > oldest->offset_bytes - end) return {};
    } else if (size_bytes > buffer.size_bytes - end) {
      if (oldest == used.end() || size_bytes > oldest->offset_bytes) return {};
      end = 0;
    }
    return end;
  }

  int pe = -1;
  BounceRing* shared = nullptr;
  const MailboxOwner* owner = nullptr;
  // The receiver's description of its bounce buffer, read once from the shared ring.
  PeerBuffer buffer;
  std::array<std::byte, kMaxExportedBytes> exported{};
  bool refuses_sources = false;  // the receiver could not map one
  std::uint64_t next = 0;        // entry
  std::deque<Used> used;         // the entries before `next` that may not be free
  std::size_t end = 0;           // of the part that was used last
  std::deque<Send*> queue;       // with bytes that are in no entry yet
};

BounceSends::BounceSends(PeerContext& context, Exports& exports, Imports& imports)
    : context_(context), exports_(exports), imports_(imports) {}
BounceSends::~BounceSends() = default;

// --- Start

BounceSends::Ring& BounceSends::ring(int pe, std::uint64_t number, const MailboxFile& file) {
  std::unique_ptr<Ring>& ring = rings_[{pe, number}];
  if (ring == nullptr) {
    ring = std::make_unique<Ring>();
    ring->pe = pe;
    ring->shared = &file.bounce_ring(number);
    ring->owner = &file.owner();
    ring->buffer = ring->shared->buffer;
    ring->exported = ring->shared->exported;
  }
  return *ring;
}

Status BounceSends::start(const OutgoingStream& stream, StreamMessage message, const MailboxFile& file,
                          std::uint64_t number, const memory::ConstBuffer& source, Completion* user) {
  if (number >= kBounceRings || source.size_bytes == 0) return {};
  Ring& ring = this->ring(stream.peer, number, file);
  const PeerBuffer& buffer = ring.buffer;
  if (buffer.exported_bytes == 0 || buffer.exported_bytes > kMaxExportedBytes) return {};
  if (BounceSizes::chunk_bytes(source.size_bytes, buffer.size_bytes) == 0) return {};
  const std::span exported(ring.exported.data(), buffer.exported_bytes);
  Imports::Import* const import = imports_.find(stream.peer, buffer, exported, source.place);
  if (import == nullptr) return {};
  const base::Result<memory::Buffer> bounce = Imports::locate(*import, buffer);
  if (!bounce.ok()) {
    return {StatusCode::kCorrupt, base::format("PE {} to PE {}: {}", context_.machine.pe(), stream.peer,
                                               bounce.status().message())};
  }
  auto send = std::make_unique<Send>(ring, stream, message, *import, bounce.value(), source, user);
  if (source.stream != nullptr) {
    auto wait = std::make_unique<Send::StreamWait>(*this, *send);
    if (!context_.wait_for_stream(source.place, source.stream, wait.get())) {
      static_cast<void>(send->take_user());
      return {};
    }
    send->stream_wait = wait.release();
  }
  if (!ring.refuses_sources) send->exported = exports_.find(source);
  ++import->copies_under_way;
  sends_.push_back(std::move(send));
  if (source.stream == nullptr) enqueue(*sends_.back());
  context_.machine.attention().wanted = true;
  return Status::pending();
}

void BounceSends::stream_is_done(Send& send, Status status) {
  --context_.memory_waits;
  send.stream_wait = nullptr;
  send.failure = std::move(status);
  if (send.failure.failed()) return end_if_over(send);
  enqueue(send);
}

void BounceSends::enqueue(Send& send) {
  send.is_queued = true;
  ++num_queued_;
  send.ring.queue.push_back(&send);
  advance(send.ring);
}

void BounceSends::dequeue(Send& send) {
  if (!std::exchange(send.is_queued, false)) return;
  std::erase(send.ring.queue, &send);
  --num_queued_;
}

// --- Moving on

bool BounceSends::poll() {
  bool any = false;
  for (auto& [key, ring] : rings_) any |= advance(*ring);
  return any;
}

bool BounceSends::advance(Ring& ring) {
  bool any = reclaim(ring);
  while (!ring.queue.empty() && ring.has_free_entry()) {
    Send& send = *ring.queue.front();
    if (send.failure.failed()) {
      dequeue(send);
      end_if_over(send);
      continue;
    }
    const bool is_offer = send.exported != nullptr && !ring.refuses_sources;
    if (is_offer) {
      offer_source(ring, send);
    } else if (!issue_chunk(ring, send)) {
      break;
    }
    any = true;
    if (is_offer || send.issued_bytes == send.source.size_bytes) dequeue(send);
  }
  return any;
}

// Takes back the entries that the receiver has freed, in their order.
bool BounceSends::reclaim(Ring& ring) {
  bool any = false;
  while (!ring.used.empty() && ring.is_oldest_free()) {
    const BounceEntry& entry = ring.entry(ring.next - ring.used.size());
    Send* const offered = ring.used.front().offered;
    ring.used.pop_front();
    any = true;
    if (offered == nullptr) continue;
    offered->is_offered = false;
    if (entry.pull.load(std::memory_order_acquire) == BounceEntry::Pull::kRefused) {
      ring.refuses_sources = true;
      offered->exported.reset();
      --num_offered_;
      ++num_queued_;
      offered->is_queued = true;
      ring.queue.push_front(offered);
      continue;
    }
    --num_offered_;
    offered->issued_bytes = offered->source.size_bytes;
    end_if_over(*offered);
  }
  return any;
}

void BounceSends::offer_source(Ring& ring, Send& send) {
  BounceEntry& entry = ring.entry(ring.next);
  Exports::Export& exported = *send.exported;
  exported.tell(ring.pe);
  entry.type = BounceEntry::Type::kSource;
  entry.stream = send.stream;
  entry.message = send.message.number;
  entry.message_offset_bytes = 0;
  entry.bounce_offset_bytes = 0;
  entry.size_bytes = send.source.size_bytes;
  entry.pull.store(BounceEntry::Pull::kOffered, std::memory_order_relaxed);
  entry.source = Exports::name(exported, send.source);
  std::ranges::copy(exported.bytes, entry.exported.begin());
  send.is_offered = true;
  send.offer = ring.next;
  ++num_offered_;
  count(send, TransferPath::kPulled);
  ring.used.push_back({0, 0, &send});
  fill(ring, ring.next++);
}

// Copies the next chunk. False if there is no room for it.
bool BounceSends::issue_chunk(Ring& ring, Send& send) {
  const std::size_t message_bytes = send.source.size_bytes;
  const std::size_t size_bytes = std::min(message_bytes - send.issued_bytes,
                                          BounceSizes::chunk_bytes(message_bytes, ring.buffer.size_bytes));
  const std::size_t used_bytes =
      (size_bytes + BounceSizes::kAlignment - 1) / BounceSizes::kAlignment * BounceSizes::kAlignment;
  const std::optional<std::size_t> offset = ring.find_room(used_bytes);
  if (!offset) return false;
  BounceEntry& entry = ring.entry(ring.next);
  entry.type = BounceEntry::Type::kChunk;
  entry.stream = send.stream;
  entry.message = send.message.number;
  entry.message_offset_bytes = send.issued_bytes;
  entry.bounce_offset_bytes = *offset;
  entry.size_bytes = size_bytes;
  memory::ConstBuffer from = send.source;
  from.data = static_cast<const std::byte*>(from.data) + send.issued_bytes;
  from.size_bytes = size_bytes;
  memory::Buffer to = send.bounce;
  to.data = static_cast<std::byte*>(to.data) + *offset;
  to.size_bytes = size_bytes;
  ring.used.push_back({*offset, used_bytes, nullptr});
  ring.end = *offset + used_bytes;
  const std::uint64_t number = ring.next++;
  send.issued_bytes += size_bytes;
  count(send, TransferPath::kBounced);
  auto chunk = std::make_unique<Chunk>(*this, send, number);
  Status status = context_.memory.copy(to, from, chunk.get());
  if (context_.began(status)) {
    ++send.copies_in_flight;
    chunks_.push_back(chunk.release());
  } else {
    send.failure = std::move(status);
    entry.type = BounceEntry::Type::kNothing;
    fill(ring, number);
  }
  return true;
}

void BounceSends::copied(Chunk& chunk, Status status) {
  --context_.memory_waits;
  std::erase(chunks_, &chunk);
  Send& send = *chunk.send;
  --send.copies_in_flight;
  Ring& ring = send.ring;
  if (status.failed()) {
    ring.entry(chunk.entry).type = BounceEntry::Type::kNothing;
    if (send.failure.ok()) send.failure = std::move(status);
  }
  fill(ring, chunk.entry);
  end_if_over(send);
}

void BounceSends::fill(Ring& ring, std::uint64_t number) {
  ring.entry(number).word.store(BounceEntry::filled(number), std::memory_order_release);
  context_.wake(ring.pe, *ring.owner);
}

void BounceSends::count(Send& send, TransferPath path) {
  if (!std::exchange(send.is_counted, true)) {
    context_.count(TransferType::kPeerCopy, path, send.source, send.user());
  }
}

// --- The end of a send

void BounceSends::end_if_over(Send& send) {
  const bool is_copied = send.issued_bytes == send.source.size_bytes;
  if (send.copies_in_flight > 0 || send.is_offered || (send.failure.ok() && !is_copied)) return;
  dequeue(send);
  Status status = std::move(send.failure);
  const std::size_t size_bytes = status.ok() ? send.source.size_bytes : 0;
  // Later, because this may be a start call.
  context_.finish_later(send.take_user(), std::move(status), size_bytes);
  remove(send);
}

void BounceSends::remove(Send& send) {
  imports_.copy_done(send.import);
  std::erase_if(sends_, [&](const auto& one) { return one.get() == &send; });
}

void BounceSends::end(Send& send) {
  if (send.stream_wait != nullptr) {
    --context_.memory_waits;
    std::exchange(send.stream_wait, nullptr)->send = nullptr;
  }
  if (std::exchange(send.is_offered, false)) {
    --num_offered_;
    // If the receiver copies it now, it has had its time: it hangs, or is gone.
    auto offered = BounceEntry::Pull::kOffered;
    send.ring.entry(send.offer).pull.compare_exchange_strong(offered, BounceEntry::Pull::kRevoked);
  }
  dequeue(send);
  send.failure = closed_before_sending();
  end_if_over(send);
}

void BounceSends::begin_close() {
  for (std::size_t i = sends_.size(); i-- > 0;) {
    if (sends_[i]->stream_wait != nullptr) end(*sends_[i]);
  }
}

void BounceSends::end_waits() {
  const auto limit = std::chrono::steady_clock::now() + kRoomLimit;
  while (is_waiting() && std::chrono::steady_clock::now() < limit) {
    if (!context_.memory.progress() && !poll()) std::this_thread::yield();
  }
  for (std::size_t i = sends_.size(); i-- > 0;) {
    Send& send = *sends_[i];
    if (send.is_queued || send.is_offered) end(send);
  }
}

void BounceSends::end_close() {
  // These devices hang.
  for (Chunk* chunk : std::exchange(chunks_, {})) {
    --context_.memory_waits;
    chunk->sends = nullptr;
    chunk->send->copies_in_flight = 0;
  }
  for (std::size_t i = sends_.size(); i-- > 0;) end(*sends_[i]);
}

}  // namespace weft::machine
