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
  Side counts;
  Side waits;
  Side signals;
  Side freed;
  bool has_begun = false;
  bool is_over = false;
  std::uint32_t number = 0;
};

Result<EmulatedBackend::End> EmulatedBackend::check_end(const MessageEnd& end, Place place) {
  End checked;
  checked.wanted = end;
  const std::size_t data_bytes = end.size_bytes;
  const bool packs = end.side == MessageSide::kSendPackets;
  const bool unpacks = end.side == MessageSide::kReceivePackets;
  const bool has_data = end.side == MessageSide::kSend || packs || unpacks;
  const std::size_t words = end.parts * sizeof(std::uint32_t);
  const auto add = [&](Side& side, const char* role, const void* address, std::size_t size_bytes,
                       bool is_own) {
    if (address == nullptr || size_bytes == 0) return Status();
    Result<Side> found =
        is_own ? check_side(role, address, place, size_bytes) : check_device_side(role, address, size_bytes);
    if (found.ok()) side = *found;
    return found.status();
  };
  for (const Status& status : {add(checked.to, packs ? kPackets : kMessageTarget, end.to,
                                   !has_data ? 0
                                   : packs   ? packet_bytes(data_bytes)
                                             : data_bytes,
                                   false),
                               add(checked.from, unpacks ? kPackets : kMessageSource, end.from,
                                   !has_data ? 0
                                   : unpacks ? packet_bytes(data_bytes)
                                             : data_bytes,
                                   false),
                               add(checked.counts, kMessageCount, end.counts,
                                   is_send(end.side) ? words : sizeof(std::uint32_t), true),
                               add(checked.waits, kMessageWord, end.waits,
                                   end.side == MessageSide::kReceive ? words : sizeof(std::uint32_t), true),
                               add(checked.signals, kMessageWord, end.signals,
                                   end.side == MessageSide::kSend ? words : sizeof(std::uint32_t), false),
                               add(checked.freed, kMessageCount, end.freed, sizeof(std::uint32_t), true)}) {
    if (status.failed()) return status;
  }
  return checked;
}

Status EmulatedBackend::queue_messages(std::span<const MessageEnd> ends, Place place, StreamHandle stream) {
  std::vector<End> checked;
  for (const MessageEnd& end : ends) {
    Result<End> one = check_end(end, place);
    if (!one.ok()) return one.status();
    checked.push_back(*one);
  }
  has_steps_ = true;
  return streams_.enqueue(stream, place.device,
                          [this, checked = std::move(checked)]() mutable { return run_ends(checked); });
}

Status EmulatedBackend::run_ends(std::vector<End>& ends) {
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

// Reaches only what the end has to touch now: a peer may free what is done with.
Status EmulatedBackend::run_end(End& end) {
  const MessageEnd& wanted = end.wanted;
  const MessageSide side = wanted.side;
  const auto words = [&](const char* role, const Side& at, const std::uint32_t* address, void*& found) {
    return address == nullptr ? Status() : view(role, at, sizeof(std::uint32_t), found);
  };
  void* counts = nullptr;
  if (!end.has_begun) {
    if (Status status = words(kMessageCount, end.counts, wanted.counts, counts); status.failed())
      return status;
    if (counts != nullptr) end.number = word_at(counts).load(std::memory_order_relaxed);
    if (!is_send(side)) {
      if (Status status = signal_freed(end); status.failed()) return status;
    }
    end.has_begun = true;
  }
  const std::uint32_t next = end.number + 1;
  const std::uint32_t own_parts = is_send(side) ? wanted.parts : 1;
  void* waits = nullptr;
  if (Status status = words(kMessageWord, end.waits, wanted.waits, waits); status.failed()) return status;
  if (is_send(side)) {
    if (waits != nullptr && !has_reached(word_at(waits).load(std::memory_order_acquire), end.number))
      return Status::pending();
    if (side == MessageSide::kAwaitPlace) return {};
  } else if (side == MessageSide::kReceive && waits != nullptr) {
    for (std::uint32_t part = 0; part < wanted.parts; ++part)
      if (!has_reached(word_at(waits, part).load(std::memory_order_acquire), next)) return Status::pending();
  }
  if (side != MessageSide::kReceive && wanted.size_bytes > 0) {
    if (Status status = move_data(end, next); !status.ok()) return status;
  }
  void* signals = nullptr;
  if (side == MessageSide::kSend) {
    if (Status status = words(kMessageWord, end.signals, wanted.signals, signals); status.failed())
      return status;
  }
  if (Status status = words(kMessageCount, end.counts, wanted.counts, counts); status.failed()) return status;
  for (std::uint32_t part = 0; part < own_parts; ++part) {
    if (signals != nullptr) word_at(signals, part).store(next, std::memory_order_release);
    if (counts != nullptr) word_at(counts, part).store(next, std::memory_order_relaxed);
  }
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
  if (end.wanted.side == MessageSide::kReceivePackets) {
    for (std::size_t i = 0; i < num_packets(size_bytes); ++i)
      if (number_of(packet_at(from, i).load(std::memory_order_acquire)) != next) return Status::pending();
  }
  if (Status status = view(kMessageTarget, end.to, size_bytes, to); status.failed()) return status;
  if (end.wanted.side == MessageSide::kSend) {
    std::memmove(to, from, size_bytes);
    return {};
  }
  for (std::size_t i = 0; i < num_packets(size_bytes); ++i) {
    const Piece piece = piece_of(i, size_bytes);
    if (end.wanted.side == MessageSide::kReceivePackets) {
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
