// A ring in shared memory through which one process sends small messages to another one.
//
// A message takes as many cells, of one cache line each, as it needs. They lie one behind another: a message that begins near the end
// of the ring goes on in cells behind it, and the first cells of the ring are left out then. Its position is the number of cells that
// have been taken before it.
//
//     sender     fills the cells at its position, then turn := the turn of that position.
//     receiver   reads the message at its position when the turn there is that of the position. Its `head` follows, in steps.
//
// A sender reads `head` only when the ring looks full to it, so that a message moves the lines of its cells and no other one. A cell
// inside a message holds bytes of the user, so the receiver clears its turn before the cell may be a first one again.
//
// Threads: one sender; one receiver. All zeros is an empty ring. Everything that either side reads is a claim of the other one.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "machine/machine.h"

namespace weft::machine {

// The head at the start of a message's first cell.
struct CellHead {
  std::atomic<std::uint32_t> turn;
  std::uint8_t id;
  std::uint8_t header_bytes;
  std::uint16_t payload_bytes;
};
static_assert(sizeof(CellHead) == 8);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class MessageRing {
 public:
  static constexpr std::size_t kCellBytes = 64;
  static constexpr std::size_t kMostHeaderBytes = 255;

  // `memory`: size_bytes(num_cells) bytes, aligned to a cell. `num_cells`: a power of two, at least 4.
  MessageRing(std::byte* memory, std::size_t num_cells)
      : memory_(memory), num_cells_(num_cells), most_cells_(most_cells(num_cells)) {}

  // A quarter of the ring, and not more than 2 KiB with a header take: UCX copies 4 KiB faster (16 cores of a virtual Xeon).
  static constexpr std::size_t most_cells(std::size_t num_cells) {
    return std::min<std::size_t>(num_cells / 4, 36);
  }
  static constexpr std::size_t size_bytes(std::size_t num_cells) {
    return (1 + num_cells + most_cells(num_cells) - 1) * kCellBytes;
  }

  std::size_t num_cells() const { return num_cells_; }
  // Cells that are read, from the first one of the ring on.
  std::atomic<std::uint64_t>& head() const { return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_); }
  CellHead& cell(std::uint64_t position) const {
    return *reinterpret_cast<CellHead*>(memory_ + kCellBytes * (1 + (position & (num_cells_ - 1))));
  }
  static std::byte* bytes(CellHead& cell) { return reinterpret_cast<std::byte*>(&cell) + sizeof(CellHead); }

  // Odd, so that no position has the turn of a cleared cell.
  static constexpr std::uint32_t turn_of(std::uint64_t position) {
    return static_cast<std::uint32_t>(position << 1) | 1U;
  }
  // Where the payload begins behind a header.
  static constexpr std::size_t payload_at(std::size_t header_bytes) { return (header_bytes + 7) / 8 * 8; }
  // How many cells a message takes; 0 if it is too large.
  std::size_t cells_for(std::size_t header_bytes, std::size_t payload_bytes) const {
    if (header_bytes > kMostHeaderBytes || payload_bytes > most_cells_ * kCellBytes) return 0;
    const std::size_t cells =
        (sizeof(CellHead) + payload_at(header_bytes) + payload_bytes + kCellBytes - 1) / kCellBytes;
    return cells <= most_cells_ ? cells : 0;
  }

 private:
  std::byte* memory_;
  std::size_t num_cells_;
  std::size_t most_cells_;
};

class RingSender {
 public:
  explicit RingSender(const MessageRing& ring) : ring_(ring) {}

  std::size_t cells_for(std::size_t header_bytes, std::size_t payload_bytes) const {
    return ring_.cells_for(header_bytes, payload_bytes);
  }
  // False if the ring has no room now. `cells`: those of the message, not 0.
  bool send(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload,
            std::size_t cells) {
    const std::uint64_t end = position_ + cells;
    if (end - known_head_ > ring_.num_cells()) [[unlikely]] {
      known_head_ = ring_.head().load(std::memory_order_acquire);
      if (end - known_head_ > ring_.num_cells()) return false;
    }
    CellHead& cell = ring_.cell(position_);
    cell.id = static_cast<std::uint8_t>(id);
    cell.header_bytes = static_cast<std::uint8_t>(header.size());
    cell.payload_bytes = static_cast<std::uint16_t>(payload.size());
    std::byte* const bytes = MessageRing::bytes(cell);
    // Not std::ranges::copy, which GCC 12 makes a loop over bytes.
    if (!header.empty()) std::memcpy(bytes, header.data(), header.size());
    if (!payload.empty())
      std::memcpy(bytes + MessageRing::payload_at(header.size()), payload.data(), payload.size());
    cell.turn.store(MessageRing::turn_of(position_), std::memory_order_release);
    position_ = end;
    return true;
  }

 private:
  MessageRing ring_;
  std::uint64_t position_ = 0;
  std::uint64_t known_head_ = 0;
};

class RingReceiver {
 public:
  explicit RingReceiver(const MessageRing& ring) : ring_(ring), next_(&ring.cell(0)) {}

  // Nothing is received any more. May be called by what delivers.
  void stop() { next_ = &never_; }
  bool has_message() const { return next_->turn.load(std::memory_order_acquire) == turn_; }
  // The result of receive().
  enum class Received : std::uint8_t { kNothing, kMessage, kEnough, kBroken };
  // Calls deliver(id, header, payload) for the next message, if it is there. The id may be any, and the bytes are valid during the call.
  // kEnough: a message, and deliver() has returned true.
  // kBroken: the sender has written sizes that cannot be. Nothing is received from this ring any more.
  template <class Deliver>
  Received receive(Deliver deliver) {
    if (!has_message()) return Received::kNothing;
    CellHead& cell = *next_;
    const std::size_t header_bytes = cell.header_bytes;
    const std::size_t payload_bytes = cell.payload_bytes;
    const std::size_t cells = ring_.cells_for(header_bytes, payload_bytes);
    if (cells == 0) [[unlikely]] {
      stop();
      return Received::kBroken;
    }
    const std::uint64_t begin = position_;
    position_ += cells;
    turn_ = MessageRing::turn_of(position_);
    next_ = &ring_.cell(position_);
    // The next message is often there already, and its line takes as long to come as this one takes to handle.
    __builtin_prefetch(next_);
    const std::byte* const bytes = MessageRing::bytes(cell);
    const bool is_enough = deliver(AmId{cell.id}, std::span(bytes, header_bytes),
                                   std::span(bytes + MessageRing::payload_at(header_bytes), payload_bytes));
    for (std::uint64_t inside = begin + 1; inside != position_; ++inside)
      ring_.cell(inside).turn.store(0, std::memory_order_relaxed);
    if (position_ - reported_ >= ring_.num_cells() / 4) {
      reported_ = position_;
      ring_.head().store(position_, std::memory_order_release);
    }
    return is_enough ? Received::kEnough : Received::kMessage;
  }

 private:
  // A cell of no ring: its turn never comes, because turns are odd.
  inline static CellHead never_{};

  MessageRing ring_;
  CellHead* next_;
  std::uint32_t turn_ = MessageRing::turn_of(0);
  std::uint64_t position_ = 0;
  std::uint64_t reported_ = 0;
};

}  // namespace weft::machine
