// Messages of emulated devices, see device_message.h. The ends of one call go on side by side, as the blocks of a kernel do.
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/format.h"
#include "memory/kinds/emulated/emulated_backend.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

constexpr const char* kMessageWord = "word of a message";
constexpr const char* kMessageCount = "count of messages";
constexpr const char* kMessageTarget = "destination of a message";
constexpr const char* kMessageSource = "source of a message";
constexpr const char* kPackets = "packets of a message";
constexpr const char* kLabel = "label of a message";

std::atomic_ref<std::uint32_t> word_at(void* words, std::uint32_t number = 0) {
  return std::atomic_ref(static_cast<std::uint32_t*>(words)[number]);
}

std::atomic_ref<std::uint64_t> packet_at(void* packets, std::size_t number) {
  return std::atomic_ref(static_cast<std::uint64_t*>(packets)[number]);
}

std::uint64_t packet_of(std::uint32_t data, std::uint32_t number) {
  return std::uint64_t{number} << 32 | data;
}

std::uint32_t number_of(std::uint64_t packet) { return static_cast<std::uint32_t>(packet >> 32); }

// Packets come in pairs, so a message ends with one that may have no data.
std::size_t num_packets(std::size_t size_bytes) { return packet_bytes(size_bytes) / sizeof(std::uint64_t); }

// The data of a packet.
struct Piece {
  std::size_t begin;
  std::size_t size;
};
Piece piece_of(std::size_t packet, std::size_t size_bytes) {
  const std::size_t begin = std::min(packet * sizeof(std::uint32_t), size_bytes);
  return {begin, std::min(sizeof(std::uint32_t), size_bytes - begin)};
}

}  // namespace

struct EmulatedBackend::End {
  MessageEnd wanted;
  Side to;
  Side from;
  Side count;
  Side waits;
  Side signals;
  Side freed;
  Side labels;
  bool has_begun = false;
  bool is_over = false;
  std::uint32_t number = 0;

  void go_to_place();
};

// From the addresses of place 0 to those of the message's.
void EmulatedBackend::End::go_to_place() {
  const std::size_t place = wanted.place_of(number);
  const std::size_t word = place * sizeof(std::uint32_t);
  const bool takes = is_take(wanted.side);
  (takes ? from : to).address += place * wanted.place_bytes;
  labels.address += place * wanted.place_bytes;
  (takes ? waits : signals).address += word * kMaxMessageParts;
  (takes ? signals : waits).address += word;
}

Result<EmulatedBackend::End> EmulatedBackend::check_end(const MessageEnd& end, Place place) {
  End checked;
  checked.wanted = end;
  const MessageSide side = end.side;
  const bool takes = is_take(side);
  const bool has_data = has_packets(side) || side == MessageSide::kSend || side == MessageSide::kTake;
  const std::size_t data_bytes = has_data ? end.size_bytes : 0;
  const auto packed = [&](bool is_packed) { return is_packed ? packet_bytes(data_bytes) : data_bytes; };
  const std::size_t other_places = end.num_places - 1;
  const auto in_ring = [&](bool is_ring, std::size_t size_bytes) {
    return size_bytes == 0 || !is_ring ? size_bytes : other_places * end.place_bytes + size_bytes;
  };
  const auto words = [&](bool are_of_parts) {
    const std::size_t a_place = are_of_parts ? kMaxMessageParts : 1;
    return (other_places * a_place + (are_of_parts ? end.parts : 1)) * sizeof(std::uint32_t);
  };
  const auto add = [&](Side& at, const char* role, const void* address, std::size_t size_bytes, bool is_own) {
    if (address == nullptr || size_bytes == 0) return Status();
    Result<Side> found =
        is_own ? check_side(role, address, place, size_bytes) : check_device_side(role, address, size_bytes);
    if (found.ok()) at = *found;
    return found.status();
  };
  const bool packs = side == MessageSide::kSendPackets;
  const bool unpacks = has_packets(side) && !packs;
  Side taken;
  for (const Status& status :
       {add(checked.to, packs ? kPackets : kMessageTarget, end.to, in_ring(!takes, packed(packs)), false),
        add(checked.from, unpacks ? kPackets : kMessageSource, end.from, in_ring(takes, packed(unpacks)),
            false),
        add(checked.count, kMessageCount, end.count, sizeof(MessageCount), true),
        add(checked.waits, kMessageWord, end.waits, words(!is_send(side) && !unpacks), true),
        add(checked.signals, kMessageWord, end.signals, words(side == MessageSide::kSend), false),
        add(checked.freed, kMessageCount, end.freed, sizeof(std::uint32_t), true),
        add(taken, kMessageCount, end.taken, words(false), true),
        add(checked.labels, kLabel, end.labels, in_ring(true, kPacketPairBytes), false)}) {
    if (status.failed()) return status;
  }
  return checked;
}

Status EmulatedBackend::queue_messages(std::span<const MessageEnd> ends, Place place, StreamHandle stream) {
  std::vector<MessageEnd> numbered(ends.begin(), ends.end());
  number_ends(numbered);
  std::vector<End> checked;
  for (const MessageEnd& end : numbered) {
    Result<End> one = check_end(end, place);
    if (!one.ok()) return one.status();
    checked.push_back(*one);
  }
  has_steps_ = true;
  return streams_.enqueue(stream, place.device,
                          [this, checked = std::move(checked)]() mutable { return run_ends(checked); });
}

Status EmulatedBackend::run_ends(std::vector<End>& ends) {
  for (End& end : ends) {
    if (end.has_begun) continue;
    if (Status status = begin_end(end); status.failed()) return status;
  }
  bool all_over = true;
  for (End& end : ends) {
    if (end.is_over) continue;
    const Status status = run_end(end);
    if (status.failed()) return status;
    if (status.ok()) {
      end.is_over = true;
    } else {
      all_over = false;
    }
  }
  if (all_over) return {};
  if (steps_are_aborted_)
    return Status(StatusCode::kClosed, "the end of the job has ended a message that a stream waited for");
  ++num_step_waits_;
  return Status::pending();
}

Status EmulatedBackend::begin_end(End& end) {
  if (end.wanted.count != nullptr) {
    void* count = nullptr;
    if (Status status = view(kMessageCount, end.count, sizeof(MessageCount), count); status.failed())
      return status;
    end.number = word_at(count).load(std::memory_order_relaxed) + end.wanted.offset;
  }
  end.go_to_place();
  end.has_begun = true;
  const bool is_receive = !is_send(end.wanted.side) && !is_take(end.wanted.side);
  return is_receive ? signal_freed(end) : Status();
}

// Reaches only what the end has to touch now: a peer may free what is done with.
Status EmulatedBackend::run_end(End& end) {
  const MessageSide side = end.wanted.side;
  if (is_take(side) && end.wanted.label != 0) {
    if (Status status = check_message_label(end); !status.ok()) return status;
  }
  if (side == MessageSide::kAwaitMessage) return {};
  if (Status status = await_message_words(end); !status.ok()) return status;
  if (side == MessageSide::kAwaitPlace) return {};
  if (is_send(side) && end.wanted.label != 0) {
    void* label = nullptr;
    if (Status status = view(kLabel, end.labels, kPacketPairBytes, label); status.failed()) return status;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto half = static_cast<std::uint32_t>(end.wanted.label >> (32 * i));
      packet_at(label, i).store(packet_of(half, end.number + 1), std::memory_order_release);
    }
  }
  if (side != MessageSide::kReceive && end.wanted.size_bytes > 0) {
    if (Status status = move_data(end, end.number + 1); !status.ok()) return status;
  }
  return finish_end(end);
}

// pending: the label has not come.
Status EmulatedBackend::check_message_label(const End& end) {
  void* label = nullptr;
  if (Status status = view(kLabel, end.labels, kPacketPairBytes, label); status.failed()) return status;
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::uint64_t packet = packet_at(label, i).load(std::memory_order_acquire);
    if (number_of(packet) != end.number + 1) return Status::pending();
    found |= (packet & 0xffffffff) << (32 * i);
  }
  if (found == end.wanted.label) return {};
  return Status(StatusCode::kInvalidArgument, wrong_label(end.wanted.label, found));
}

// pending: a word has not been reached.
Status EmulatedBackend::await_message_words(const End& end) {
  const MessageSide side = end.wanted.side;
  const bool receives_packets = !is_send(side) && has_packets(side);
  if (end.wanted.waits == nullptr || receives_packets) return {};
  const std::uint32_t parts = is_send(side) ? 1 : end.wanted.parts;
  const std::uint32_t needed = is_send(side) ? end.number - (end.wanted.num_places - 1) : end.number + 1;
  void* waits = nullptr;
  if (Status status = view(kMessageWord, end.waits, parts * sizeof(std::uint32_t), waits); status.failed())
    return status;
  for (std::uint32_t part = 0; part < parts; ++part)
    if (!has_reached(word_at(waits, part).load(std::memory_order_acquire), needed)) return Status::pending();
  return {};
}

Status EmulatedBackend::finish_end(const End& end) {
  const std::uint32_t next = end.number + 1;
  const bool is_data_send = end.wanted.side == MessageSide::kSend;
  if (end.wanted.signals != nullptr && (is_data_send || is_take(end.wanted.side))) {
    const std::uint32_t parts = is_data_send ? end.wanted.parts : 1;
    void* signals = nullptr;
    if (Status status = view(kMessageWord, end.signals, parts * sizeof(std::uint32_t), signals);
        status.failed())
      return status;
    for (std::uint32_t part = 0; part < parts; ++part)
      word_at(signals, part).store(next, std::memory_order_release);
  }
  if (end.wanted.count == nullptr) return {};
  void* count = nullptr;
  if (Status status = view(kMessageCount, end.count, sizeof(MessageCount), count); status.failed())
    return status;
  word_at(count).store(end.number + end.wanted.raise, std::memory_order_relaxed);
  return {};
}

Status EmulatedBackend::view(const char* role, const Side& at, std::size_t size_bytes, void*& address) {
  Result<void*> found = reach(role, at, size_bytes);
  if (found.ok()) address = *found;
  return found.status();
}

Status EmulatedBackend::signal_freed(const End& end) {
  if (end.wanted.signals == nullptr) return {};
  void* freed = nullptr;
  if (end.wanted.freed != nullptr) {
    if (Status status = view(kMessageCount, end.freed, sizeof(std::uint32_t), freed); status.failed())
      return status;
  }
  void* signals = nullptr;
  if (Status status = view(kMessageWord, end.signals, sizeof(std::uint32_t), signals); status.failed())
    return status;
  word_at(signals).store(freed == nullptr ? 0 : word_at(freed).load(std::memory_order_relaxed),
                         std::memory_order_release);
  return {};
}

Status EmulatedBackend::move_data(const End& end, std::uint32_t next) {
  const std::size_t size_bytes = end.wanted.size_bytes;
  void* from = nullptr;
  void* to = nullptr;
  if (Status status = view(kMessageSource, end.from, size_bytes, from); status.failed()) return status;
  const bool packs = end.wanted.side == MessageSide::kSendPackets;
  if (!packs && has_packets(end.wanted.side)) {
    for (std::size_t i = 0; i < num_packets(size_bytes); ++i)
      if (number_of(packet_at(from, i).load(std::memory_order_acquire)) != next) return Status::pending();
  }
  if (Status status = view(kMessageTarget, end.to, size_bytes, to); status.failed()) return status;
  if (!has_packets(end.wanted.side)) {
    std::memmove(to, from, size_bytes);
    return {};
  }
  for (std::size_t i = 0; i < num_packets(size_bytes); ++i) {
    const Piece piece = piece_of(i, size_bytes);
    if (!packs) {
      const auto data = static_cast<std::uint32_t>(packet_at(from, i).load(std::memory_order_relaxed));
      std::memcpy(static_cast<std::byte*>(to) + piece.begin, &data, piece.size);
    } else {
      std::uint32_t data = 0;
      std::memcpy(&data, static_cast<const std::byte*>(from) + piece.begin, piece.size);
      packet_at(to, i).store(packet_of(data, next), std::memory_order_release);
    }
  }
  return {};
}

}  // namespace weft::memory
