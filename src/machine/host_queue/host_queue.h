// The queue in shared memory through which a PE receives small active messages from the other PEs of its host.
//
// A message takes one entry, and its number is the entry's turn:
//
//     sender     takes the number `tail` by compare-and-swap, fills the entry, then turn := number + 1.
//     receiver   reads the entry of number n when its turn is n + 1. Its `head` follows, in steps.
//
// A sender reads `head` only when the queue looks full to it, so that a message moves the line of its entry and, if
// it is larger, the next one. A full queue takes nothing: the message goes another way, and messages may overtake each
// other.
//
// A receiver that sleeps says so in `state`. The sender that changes it back wakes the receiver.
//
// Threads: one receiver; any number of senders. All zeros is a queue without messages that is not open. Everything that the
// receiver reads is a claim of a peer. A sender that is killed between its two steps stops the queue; a job ends when
// one of its PEs dies.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "weft/base/status.h"

#include "machine/machine.h"

namespace weft::machine {

inline constexpr std::size_t kHostQueueEntries = 256;

struct HostQueueEntry {
  static constexpr std::size_t kBytes = 248;

  // Where the payload begins behind a header.
  static constexpr std::size_t payload_at(std::size_t header_bytes) { return (header_bytes + 7) / 8 * 8; }
  static constexpr bool holds(std::size_t header_bytes, std::size_t payload_bytes) {
    return header_bytes <= kBytes && payload_bytes <= kBytes &&
           payload_at(header_bytes) + payload_bytes <= kBytes;
  }

  alignas(64) std::atomic<std::uint32_t> turn;
  std::uint8_t id;
  std::uint8_t header_bytes;
  std::uint8_t payload_bytes;
  alignas(8) std::array<std::byte, kBytes> bytes;
};
static_assert(sizeof(HostQueueEntry) == 256);

struct HostQueue {
  // kNotOpen: messages must go another way. kEnded: the receiver has closed, and messages to it are dropped.
  enum HostQueueState : std::uint32_t { kNotOpen, kAwake, kAsleep, kEnded };

  HostQueueEntry& entry(std::uint64_t number) { return entries[number % kHostQueueEntries]; }

  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> head;
  std::atomic<std::uint32_t> state;
  // The name of the receiver's socket in the abstract namespace, as bind() chose it.
  std::array<char, 6> socket_name;
  // The bytes of a datagram that wakes the receiver: a random number.
  std::array<std::byte, 8> wake_word;
  std::array<HostQueueEntry, kHostQueueEntries> entries;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Makes fence_of_sleeper() of any process order the memory accesses of this process. Fails where the system has no
// membarrier(2).
base::Status take_part_in_fences();
void fence_of_sleeper();

// A sender's end of the queue of a peer.
class HostQueueSender {
 public:
  HostQueueSender() = default;
  explicit HostQueueSender(HostQueue* queue) : queue_(queue) {}

  enum class Sent : std::uint8_t { kNo, kYes, kToSleeper };
  // kNo when the queue is not open or full, or the message too large. After kToSleeper the caller must wake the
  // receiver. A message to a receiver that has closed is dropped, and kYes.
  Sent send(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload);

  const HostQueue& queue() const { return *queue_; }
  bool has_sent() const { return has_sent_; }
  explicit operator bool() const { return queue_ != nullptr; }

 private:
  HostQueue* queue_ = nullptr;
  std::uint64_t known_head_ = 0;
  bool has_sent_ = false;
};

// The receiver's end.
class HostQueueReceiver {
 public:
  HostQueueReceiver() = default;
  explicit HostQueueReceiver(HostQueue* queue) : queue_(queue), next_(&queue->entry(0)) {}

  void open() { queue_->state.store(HostQueue::kAwake); }
  void close() { queue_->state.store(HostQueue::kEnded); }

  // Each progress() of the machine asks, whether there is a queue or not.
  bool has_message() const { return next_->turn.load(std::memory_order_acquire) == turn_; }
  // Calls deliver(id, header, payload) for the next message, if it is there and its sizes can be. The id may be any,
  // and the bytes are valid during the call. Returns whether a message was there.
  template <class Deliver>
  bool receive(Deliver deliver) {
    if (!has_message()) return false;
    const HostQueueEntry& entry = *next_;
    ++head_;
    ++turn_;
    next_ = &queue_->entry(head_);
    const std::size_t header_bytes = entry.header_bytes;
    const std::size_t payload_bytes = entry.payload_bytes;
    if (HostQueueEntry::holds(header_bytes, payload_bytes)) [[likely]] {
      const std::span<const std::byte> bytes(entry.bytes);
      deliver(AmId{entry.id}, bytes.first(header_bytes),
              bytes.subspan(HostQueueEntry::payload_at(header_bytes), payload_bytes));
    }
    // Unless the delivery has closed the machine, and with it this receiver.
    if (queue_ != nullptr && head_ % kReportedEntries == 0)
      queue_->head.store(head_, std::memory_order_release);
    return true;
  }

  // Asks senders to wake this receiver. False if a message is there already: it must not sleep.
  bool before_sleep() {
    queue_->state.store(HostQueue::kAsleep);
    fence_of_sleeper();
    if (!has_message()) return true;
    after_sleep();
    return false;
  }
  void after_sleep() { queue_->state.store(HostQueue::kAwake); }

  explicit operator bool() const { return queue_ != nullptr; }

 private:
  static constexpr std::uint64_t kReportedEntries = kHostQueueEntries / 4;

  // An entry that is in no queue: its turn never comes.
  inline static const HostQueueEntry kNoEntry{};

  HostQueue* queue_ = nullptr;
  const HostQueueEntry* next_ = &kNoEntry;
  std::uint32_t turn_ = 1;
  std::uint64_t head_ = 0;
};

inline HostQueueSender::Sent HostQueueSender::send(AmId id, std::span<const std::byte> header,
                                                   std::span<const std::byte> payload) {
  if (!HostQueueEntry::holds(header.size(), payload.size())) return Sent::kNo;
  const std::uint32_t state = queue_->state.load(std::memory_order_relaxed);
  if (state != HostQueue::kAwake && state != HostQueue::kAsleep) [[unlikely]]
    return state == HostQueue::kEnded ? Sent::kYes : Sent::kNo;
  std::uint64_t number = queue_->tail.load(std::memory_order_relaxed);
  do {
    if (number - known_head_ < kHostQueueEntries) continue;
    known_head_ = queue_->head.load(std::memory_order_acquire);
    if (number - known_head_ >= kHostQueueEntries) return Sent::kNo;
  } while (!queue_->tail.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
  HostQueueEntry& entry = queue_->entry(number);
  entry.id = static_cast<std::uint8_t>(id);
  entry.header_bytes = static_cast<std::uint8_t>(header.size());
  entry.payload_bytes = static_cast<std::uint8_t>(payload.size());
  // Not std::ranges::copy, which GCC 12 makes a loop over bytes.
  if (!header.empty()) std::memcpy(entry.bytes.data(), header.data(), header.size());
  if (!payload.empty()) {
    std::memcpy(entry.bytes.data() + HostQueueEntry::payload_at(header.size()), payload.data(),
                payload.size());
  }
  entry.turn.store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
  has_sent_ = true;
  // Either this side sees the sleeper or the sleeper sees the message: the sleeper runs fence_of_sleeper(), so that this
  // side, whose path matters, needs no fence of its own.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::uint32_t asleep = HostQueue::kAsleep;
  const bool wakes = queue_->state.load(std::memory_order_relaxed) == HostQueue::kAsleep &&
                     queue_->state.compare_exchange_strong(asleep, HostQueue::kAwake);
  return wakes ? Sent::kToSleeper : Sent::kYes;
}

}  // namespace weft::machine
