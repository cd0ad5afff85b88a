#include "machine/peer_memory/bounce/arrivals.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "base/format.h"

namespace weft::machine {

using base::Completion;
using base::Result;
using base::Status;
using base::StatusCode;

// The receiver's side of a ring.
struct BounceArrivals::Ring {
  BounceEntry& entry(std::uint64_t number) const { return shared->entry(number); }
  bool has_arrival() const {
    return shared != nullptr && entry(next).word.load(std::memory_order_acquire) == BounceEntry::filled(next);
  }

  int peer = -1;
  std::uint64_t number = 0;
  BounceRing* shared = nullptr;  // null: it could not be made
  memory::Buffer buffer;
  std::shared_ptr<Exports::Export> exported;
  std::uint64_t next = 0;  // entry
  int copies_under_way = 0;
};

// A copy out of a bounce buffer, or out of the sender's memory. Deletes itself.
struct BounceArrivals::Copy final : Completion {
  Copy(BounceArrivals& arrivals_in, Ring& ring_in, std::uint64_t entry_in, BouncedReceive& receive_in,
       Imports::Import* import_in)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<Copy> copy(static_cast<Copy*>(self));
          if (copy->arrivals != nullptr) copy->arrivals->copied(*copy, std::move(status));
        }),
        arrivals(&arrivals_in),
        ring(ring_in),
        entry(entry_in),
        receive(receive_in),
        import(import_in) {}
  BounceArrivals* arrivals;  // null after close()
  Ring& ring;
  std::uint64_t entry;
  BouncedReceive& receive;
  Imports::Import* import;  // null: the bounce buffer is copied
};

BounceArrivals::BounceArrivals(PeerContext& context, Exports& exports, Imports& imports)
    : context_(context), exports_(exports), imports_(imports) {}
BounceArrivals::~BounceArrivals() = default;

// --- Rings

std::optional<std::uint64_t> BounceArrivals::ring_for(int peer, memory::Place place,
                                                      const MailboxFile& file) {
  std::unique_ptr<Ring>& ring = rings_[{peer, place.kind, place.device}];
  if (ring == nullptr) {
    ring = std::make_unique<Ring>();
    ring->peer = peer;
    ring->number = rings_.size() - 1;
    Status status = make(*ring, place, file);
    if (status.failed() && first_failure_.ok()) first_failure_ = std::move(status);
  }
  if (ring->shared == nullptr) return {};
  return ring->number;
}

Status BounceArrivals::make(Ring& ring, memory::Place place, const MailboxFile& file) {
  if (ring.number >= kBounceRings) {
    return {
        StatusCode::kUnsupported,
        base::format("no more than {} bounce buffers are made: memory of {} for messages from PE {} has none",
                     kBounceRings, memory::place_name(place), ring.peer)};
  }
  // A smaller buffer is slower, and much faster than the transport.
  std::size_t size_bytes = buffer_bytes_;
  Result<memory::Buffer> buffer = context_.memory.allocate(size_bytes, place);
  while (buffer.status().code() == StatusCode::kOutOfMemory &&
         size_bytes / 2 >= BounceSizes::kLeastBufferBytes) {
    size_bytes /= 2;
    buffer = context_.memory.allocate(size_bytes, place);
  }
  if (!buffer.ok()) return buffer.status();
  ring.buffer = *buffer;
  ring.exported = exports_.make(ring.buffer);
  if (ring.exported == nullptr) {
    static_cast<void>(context_.memory.deallocate(ring.buffer));
    return {StatusCode::kUnsupported,
            base::format("other processes cannot map memory that Weft allocates on {}: {}",
                         memory::place_name(place), exports_.first_failure().message())};
  }
  ring.exported->tell(ring.peer);
  ring.shared = &file.bounce_ring(ring.number);
  ring.shared->buffer = Exports::name(*ring.exported, ring.buffer);
  std::ranges::copy(ring.exported->bytes, ring.shared->exported.begin());
  return {};
}

void BounceArrivals::free_entry(Ring& ring, std::uint64_t number) {
  ring.entry(number).word.store(BounceEntry::free_for(number + kBounceEntries), std::memory_order_release);
}

// --- Arrivals

bool BounceArrivals::has_arrivals() const {
  return std::ranges::any_of(rings_, [](const auto& one) { return one.second->has_arrival(); });
}

bool BounceArrivals::poll(const Find& find) {
  bool any = false;
  for (auto& [key, ring] : rings_) {
    while (ring->has_arrival()) {
      take(*ring, ring->next++, find);
      any = true;
    }
  }
  return any;
}

// Frees the entry, now or after a copy.
void BounceArrivals::take(Ring& ring, std::uint64_t number, const Find& find) {
  BounceEntry& entry = ring.entry(number);
  const BounceEntry::Type type = entry.type;
  BouncedReceive* const receive =
      type == BounceEntry::Type::kNothing ? nullptr : find(ring.peer, entry.stream, entry.message);
  bool is_copying = false;
  if (receive != nullptr && type == BounceEntry::Type::kChunk) {
    is_copying = copy_chunk(ring, number, *receive);
  } else if (receive != nullptr && type == BounceEntry::Type::kSource) {
    is_copying = copy_source(ring, number, *receive);
  }
  if (!is_copying) free_entry(ring, number);
}

bool BounceArrivals::copy_chunk(Ring& ring, std::uint64_t number, BouncedReceive& receive) {
  // The sender may write to the entry at any time, so what is checked is what is used.
  const BounceEntry& entry = ring.entry(number);
  const std::uint64_t message_offset = entry.message_offset_bytes;
  const std::uint64_t bounce_offset = entry.bounce_offset_bytes;
  const std::uint64_t size_bytes = entry.size_bytes;
  const std::size_t missing_bytes = receive.buffer.size_bytes - receive.arrived_bytes;
  const bool is_possible = size_bytes > 0 && message_offset == receive.arrived_bytes &&
                           size_bytes <= missing_bytes && bounce_offset <= ring.buffer.size_bytes &&
                           size_bytes <= ring.buffer.size_bytes - bounce_offset;
  if (!is_possible) {
    receive.fail({StatusCode::kCorrupt,
                  base::format("PE {} sent {} bytes at offset {} of a message of {} bytes, of which {} had "
                               "come, at offset {} of a bounce buffer of {} bytes",
                               ring.peer, size_bytes, message_offset, receive.buffer.size_bytes,
                               receive.arrived_bytes, bounce_offset, ring.buffer.size_bytes)});
    receive.arrived_bytes = receive.buffer.size_bytes;
    return false;
  }
  memory::Buffer to = receive.buffer;
  to.data = static_cast<std::byte*>(to.data) + receive.arrived_bytes;
  to.size_bytes = size_bytes;
  receive.arrived_bytes += size_bytes;
  memory::Buffer from = ring.buffer;
  from.data = static_cast<std::byte*>(from.data) + bounce_offset;
  from.size_bytes = size_bytes;
  return receive.failure.ok() && start(ring, number, receive, to, from, nullptr);
}

bool BounceArrivals::copy_source(Ring& ring, std::uint64_t number, BouncedReceive& receive) {
  using Pull = BounceEntry::Pull;
  BounceEntry& entry = ring.entry(number);
  const PeerBuffer source = entry.source;
  if (receive.arrived_bytes != 0 || source.size_bytes != receive.buffer.size_bytes ||
      source.exported_bytes > kMaxExportedBytes) {
    receive.fail(
        {StatusCode::kCorrupt,
         base::format("PE {} offers {} bytes for a message of {} bytes, of which {} had come", ring.peer,
                      source.size_bytes, receive.buffer.size_bytes, receive.arrived_bytes)});
    receive.arrived_bytes = receive.buffer.size_bytes;
    entry.pull.store(Pull::kOver, std::memory_order_relaxed);
    return false;
  }
  auto offered = Pull::kOffered;
  if (!entry.pull.compare_exchange_strong(offered, Pull::kCopying)) return false;
  const std::array<std::byte, kMaxExportedBytes> exported = entry.exported;
  Imports::Import* const import = imports_.find(
      ring.peer, source, std::span(exported.data(), source.exported_bytes), receive.buffer.place);
  const Result<memory::Buffer> from =
      import == nullptr ? Result<memory::Buffer>(memory::Buffer()) : Imports::locate(*import, source);
  // Then the sender copies it into the bounce buffer.
  if (import == nullptr || !from.ok()) {
    entry.pull.store(Pull::kRefused, std::memory_order_relaxed);
    return false;
  }
  ++import->copies_under_way;
  receive.arrived_bytes = receive.buffer.size_bytes;
  if (start(ring, number, receive, receive.buffer, from.value(), import)) return true;
  imports_.copy_done(*import);
  entry.pull.store(Pull::kOver, std::memory_order_relaxed);
  return false;
}

// Whether a copy has begun; if not, the receive has failed.
bool BounceArrivals::start(Ring& ring, std::uint64_t number, BouncedReceive& receive,
                           const memory::Buffer& to, const memory::ConstBuffer& from,
                           Imports::Import* import) {
  auto copy = std::make_unique<Copy>(*this, ring, number, receive, import);
  Status status = context_.memory.copy(to, from, copy.get());
  if (!context_.began(status)) {
    receive.fail(std::move(status));
    return false;
  }
  ++receive.copies_under_way;
  ++ring.copies_under_way;
  copies_.push_back(copy.release());
  return true;
}

void BounceArrivals::copied(Copy& copy, Status status) {
  --context_.memory_waits;
  std::erase(copies_, &copy);
  --copy.ring.copies_under_way;
  --copy.receive.copies_under_way;
  if (status.failed()) copy.receive.fail(std::move(status));
  if (copy.import != nullptr) {
    imports_.copy_done(*copy.import);
    copy.ring.entry(copy.entry).pull.store(BounceEntry::Pull::kOver, std::memory_order_relaxed);
  }
  free_entry(copy.ring, copy.entry);
}

void BounceArrivals::close() {
  for (Copy* copy : std::exchange(copies_, {})) {
    --context_.memory_waits;
    copy->arrivals = nullptr;  // its device hangs
  }
  for (auto& [key, ring] : rings_) {
    if (ring->shared == nullptr || ring->copies_under_way > 0) continue;
    static_cast<void>(context_.memory.deallocate(ring->buffer));
  }
  rings_.clear();
}

}  // namespace weft::machine
