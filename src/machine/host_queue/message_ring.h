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
static_assert(sizeof(CellHead) == 8 && offsetof(CellHead, turn) == 0);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class MessageRing {
 public:
  static constexpr std::size_t kCellBytes = 64;
  static constexpr std::size_t kMostHeaderBytes = 255;
  static constexpr std::size_t kLeastCells = 32;

  // `memory`: size_bytes(num_cells) bytes, aligned to a cell. `num_cells`: a power of two, at least kLeastCells.
  MessageRing(std::byte* memory, std::size_t num_cells)
      : memory_(memory),
        last_cell_(num_cells - 1),
        most_bytes_(most_cells(num_cells) * kCellBytes - sizeof(CellHead)) {}

  // A quarter of the ring, and not more than 2 KiB with a header take: UCX copies 4 KiB faster (16 cores of a virtual Xeon).
  static constexpr std::size_t most_cells(std::size_t num_cells) {
    return std::min<std::size_t>(num_cells / 4, 36);
  }
  static constexpr std::size_t size_bytes(std::size_t num_cells) {
    return (1 + num_cells + most_cells(num_cells) - 1) * kCellBytes;
  }

  std::size_t num_cells() const { return last_cell_ + 1; }
  // Cells that are read, from the first one of the ring on.
  std::atomic<std::uint64_t>& head() const { return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_); }
  CellHead& cell(std::uint64_t position) const {
    return *reinterpret_cast<CellHead*>(memory_ + kCellBytes * (1 + (position & last_cell_)));
  }
  static std::byte* bytes(CellHead& cell) { return reinterpret_cast<std::byte*>(&cell) + sizeof(CellHead); }

  // Odd, so that no position has the turn of a cleared cell.
  static constexpr std::uint32_t turn_of(std::uint64_t position) {
    return static_cast<std::uint32_t>(position << 1) | 1U;
  }
  // Where the payload begins behind a header.
  static constexpr std::size_t payload_at(std::size_t header_bytes) { return (header_bytes + 7) / 8 * 8; }
  // Whether a message is not too large.
  bool takes(std::size_t header_bytes, std::size_t payload_bytes) const {
    return header_bytes <= kMostHeaderBytes && payload_bytes <= most_bytes_ - payload_at(header_bytes);
  }
  // How many cells a message takes.
  static constexpr std::size_t cells_of(std::size_t header_bytes, std::size_t payload_bytes) {
    return (sizeof(CellHead) + payload_at(header_bytes) + payload_bytes + kCellBytes - 1) / kCellBytes;
  }

 private:
  std::byte* memory_;
  std::size_t last_cell_;
  std::size_t most_bytes_;  // of a message without its CellHead
};

// Any header leaves room for a payload.
static_assert(MessageRing::most_cells(MessageRing::kLeastCells) * MessageRing::kCellBytes -
                  sizeof(CellHead) >=
              MessageRing::payload_at(MessageRing::kMostHeaderBytes));

class RingSender {
 public:
  explicit RingSender(const MessageRing& ring) : ring_(ring), room_end_(ring.num_cells()) {}

  bool takes(std::size_t header_bytes, std::size_t payload_bytes) const {
    return ring_.takes(header_bytes, payload_bytes);
  }
  // False if the ring has no room now. REQUIRES: takes() it.
  bool send(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    const std::uint64_t end = position_ + MessageRing::cells_of(header.size(), payload.size());
    if (end > room_end_ && !find_room(end)) [[unlikely]]
      return false;
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
  [[gnu::noinline]] bool find_room(std::uint64_t end) {
    const std::uint64_t head = ring_.head().load(std::memory_order_acquire);
    if (position_ - head > ring_.num_cells()) return false;  // a claim that cannot be
    room_end_ = head + ring_.num_cells();
    return end <= room_end_;
  }

  MessageRing ring_;
  std::uint64_t position_ = 0;
  std::uint64_t room_end_;  // the position up to which there is room for sure
};

// The word in which the next message of a ring appears, and its turn. A receiver of many rings keeps these side by side, four in a
// cache line, because a poll reads nothing else.
struct NextTurn {
  std::atomic<std::uint32_t>* word;
  std::uint32_t turn;

  bool is_here() const { return word->load(std::memory_order_acquire) == turn; }
  // It never comes.
  void stop() { word = &never_; }

 private:
  inline static std::atomic<std::uint32_t> never_{0};  // turns are odd
};

// The rest of a receiver's end. Its functions get the NextTurn of the ring.
class RingReceiver {
 public:
  explicit RingReceiver(const MessageRing& ring) : ring_(ring), report_at_(report_interval()) {}

  NextTurn first() const { return {&ring_.cell(0).turn, MessageRing::turn_of(0)}; }
  // The result of receive().
  enum class Received : std::uint8_t { kMessage, kEnough, kBroken };
  // Calls deliver(id, header, payload) for the next message. The id may be any, and the bytes are valid during the call, which may
  // stop `next`.
  // kEnough: deliver() has returned true.
  // kBroken: the sender has written sizes that cannot be. Nothing is received from this ring any more.
  // REQUIRES: next.is_here().
  template <class Deliver>
  Received receive(NextTurn& next, Deliver deliver) {
    CellHead& cell = *reinterpret_cast<CellHead*>(next.word);
    const std::size_t header_bytes = cell.header_bytes;
    const std::size_t payload_bytes = cell.payload_bytes;
    if (!ring_.takes(header_bytes, payload_bytes)) [[unlikely]] {
      next.stop();
      return Received::kBroken;
    }
    const std::uint64_t begin = position_;
    const std::uint64_t end = begin + MessageRing::cells_of(header_bytes, payload_bytes);
    position_ = end;
    next = {&ring_.cell(end).turn, MessageRing::turn_of(end)};
    // The next message is often there already, and its line takes as long to come as this one takes to handle.
    __builtin_prefetch(next.word);
    const std::byte* const bytes = MessageRing::bytes(cell);
    const bool is_enough = deliver(AmId{cell.id}, std::span(bytes, header_bytes),
                                   std::span(bytes + MessageRing::payload_at(header_bytes), payload_bytes));
    for (std::uint64_t inside = begin + 1; inside != end; ++inside)
      ring_.cell(inside).turn.store(0, std::memory_order_relaxed);
    if (end >= report_at_) [[unlikely]] {
      report_at_ = end + report_interval();
      ring_.head().store(end, std::memory_order_release);
    }
    return is_enough ? Received::kEnough : Received::kMessage;
  }

 private:
  std::uint64_t report_interval() const { return ring_.num_cells() / 4; }

  MessageRing ring_;
  std::uint64_t position_ = 0;
  std::uint64_t report_at_;
};

}  // namespace weft::machine
