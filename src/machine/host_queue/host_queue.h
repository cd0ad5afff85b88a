// The queue in shared memory through which a PE receives small active messages from the other PEs of its host: a ring for each of
// them, which keeps their order. What a full ring does not take waits at the sender, see HostQueues.
//
// A receiver that sleeps says so in `state`. The sender that changes it back wakes the receiver. A sender says in `senders` that it has
// sent, and rings the bell: a receiver looks at the rings of these alone, because a look at memory of a shared file takes a page.
//
// Threads: one receiver; one sender for each ring. All zeros is a queue without messages that is not open. A sender that is killed while
// it writes a message stops its ring.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/status.h"

#include "machine/host_queue/message_ring.h"
#include "machine/machine.h"

namespace weft::machine {

// kNotOpen: messages must go another way. kEnded: the receiver has closed, and messages to it are dropped.
enum class QueueState : std::uint32_t { kNotOpen, kAwake, kAsleep, kEnded };

// Hosts with more PEs have no queues.
inline constexpr std::size_t kMostQueuePes = 1024;

// The head of a queue, which all its senders read.
struct alignas(64) QueueHead {
  std::atomic<QueueState> state;
  // The name of the receiver's socket in the abstract namespace, as bind() chose it.
  std::array<char, 6> socket_name;
  // The bytes of a datagram that wakes the receiver: a random number.
  std::array<std::byte, 8> wake_word;
  // kRung when a sender has set its bit in `senders`. The receiver takes it back before it reads them.
  alignas(64) std::atomic<std::uint32_t> bell;
  static constexpr std::uint32_t kRung = 1;
  // A bit for each sender that has sent a message.
  std::array<std::atomic<std::uint64_t>, kMostQueuePes / 64> senders;
};

// The memory of a queue: the head, then the rings by the number of their sender on the host.
class HostQueue {
 public:
  HostQueue() = default;
  // `memory`: size_bytes(num_pes) bytes, aligned to a cache line. `num_pes`: those of the host.
  HostQueue(std::byte* memory, std::size_t num_pes) : memory_(memory), num_cells_(cells_for(num_pes)) {}

  // 32 KiB for each pair of PEs, and less where more than 8 PEs share a host. Only pairs that have sent messages take memory.
  static constexpr std::size_t cells_for(std::size_t num_pes) {
    return std::clamp<std::size_t>(std::bit_floor(std::size_t{4096} / num_pes), MessageRing::kLeastCells,
                                   512);
  }
  static constexpr std::size_t size_bytes(std::size_t num_pes) {
    return sizeof(QueueHead) + num_pes * MessageRing::size_bytes(cells_for(num_pes));
  }

  explicit operator bool() const { return memory_ != nullptr; }
  QueueHead& head() const { return *reinterpret_cast<QueueHead*>(memory_); }
  MessageRing ring(std::size_t sender) const {
    return {memory_ + sizeof(QueueHead) + sender * MessageRing::size_bytes(num_cells_), num_cells_};
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t num_cells_ = 0;
};

// Makes fence_of_sleeper() of any process order the memory accesses of this process. Fails where the system has no
// membarrier(2).
base::Status take_part_in_fences();
void fence_of_sleeper();

// A sender's end of the queue of a peer.
class alignas(64) HostQueueSender {
 public:
  // Of no queue: send() returns kNo.
  HostQueueSender() = default;
  HostQueueSender(const HostQueue& queue, std::size_t sender)
      : head_(&queue.head()), ring_(queue.ring(sender)), number_(static_cast<std::uint32_t>(sender)) {}

  enum class Sent : std::uint8_t { kNo, kYes, kToSleeper, kFull };
  // kNo when the queue is not open, or the message too large: it must go another way. kFull when there is no room now. After
  // kToSleeper the caller must wake the receiver. A message to a receiver that has closed is dropped, and kYes.
  Sent send(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (!is_plain_ || !ring_.takes(header.size(), payload.size()) || !ring_.send(id, header, payload))
        [[unlikely]]
      return send_special(id, header, payload);
    return look_for_sleeper();
  }

  // Until release() all messages find the ring full: earlier ones wait.
  void hold() {
    is_held_ = true;
    is_plain_ = false;
  }
  void release() { is_held_ = false; }

  const QueueHead& head() const { return *head_; }
  bool has_sent() const { return has_sent_; }

 private:
  // The rest of send(): the first message, what finds no room or is too large, and receivers that are not open.
  [[gnu::cold, gnu::noinline]] Sent send_special(AmId id, std::span<const std::byte> header,
                                                 std::span<const std::byte> payload);
  Sent look_for_sleeper() {
    // Either this side sees the sleeper or the sleeper sees the message: the sleeper runs fence_of_sleeper(), so that this
    // side, whose path matters, needs no fence of its own.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (head_->state.load(std::memory_order_relaxed) == QueueState::kAsleep && is_first_to_wake())
        [[unlikely]]
      return Sent::kToSleeper;
    return Sent::kYes;
  }
  [[gnu::cold, gnu::noinline]] bool is_first_to_wake();

  QueueHead* head_ = nullptr;
  RingSender ring_{MessageRing(nullptr, MessageRing::kLeastCells)};
  std::uint32_t number_ = 0;
  // The receiver was open, and none waits: a message that fits goes into the ring without a look at the receiver's state.
  bool is_plain_ = false;
  bool has_sent_ = false;
  bool is_held_ = false;
};

// The receiver's end.
class HostQueueReceiver {
 public:
  HostQueueReceiver() = default;
  // `receiver`: the PE's own number on the host, among `num_pes`.
  HostQueueReceiver(const HostQueue& queue, std::size_t receiver, std::size_t num_pes);
  HostQueueReceiver(HostQueueReceiver&&) = default;
  HostQueueReceiver& operator=(HostQueueReceiver&&) = default;

  void open() { head_->state.store(QueueState::kAwake); }
  // May be called by what delivers.
  void close();

  // Whether there is a message or a new sender. The next receive() begins there.
  bool has_message() {
    return find_message(at_, next_.data() + next_.size()) || find_message(next_.data(), at_);
  }
  // Calls deliver(id, header, payload) for messages that are here, up to `most`, until deliver() returns true. The next call begins
  // with the ring behind the last one, so that all have their turn. `deliver` must not receive. Returns false if a ring is not read any
  // more, see RingReceiver.
  // REQUIRES: has_message() has returned true, and nothing was received since then.
  template <class Deliver>
  [[nodiscard]] bool receive(int most, Deliver deliver) {
    if (at_ == next_.data() && !admit_senders()) [[unlikely]]
      return true;
    RingReceiver* ring = rings_.data() + (at_ - next_.data()) - 1;
    for (NextTurn* at = at_; at != next_.data() + next_.size(); ++at, ++ring) {
      if (at != at_ && !at->is_here()) continue;  // at_ has one
      do {
        const RingReceiver::Received one = ring->receive(*at, deliver);
        if (one == RingReceiver::Received::kMessage && --most > 0) [[likely]]
          continue;
        at_ = at + 1;
        return one != RingReceiver::Received::kBroken;
      } while (at->is_here());
    }
    at_ = next_.data();
    return true;
  }

  // Asks senders to wake this receiver. False if a message is there already: it must not sleep.
  bool before_sleep() {
    head_->state.store(QueueState::kAsleep);
    fence_of_sleeper();
    if (!has_message()) return true;
    after_sleep();
    return false;
  }
  void after_sleep() { head_->state.store(QueueState::kAwake); }

  explicit operator bool() const { return head_ != nullptr && !is_closed_; }

 private:
  bool find_message(NextTurn* at, const NextTurn* end) {
    for (; at != end; ++at) {
      if (!at->is_here()) continue;
      at_ = at;
      return true;
    }
    return false;
  }
  // Returns whether a ring has a message.
  [[gnu::cold, gnu::noinline]] bool admit_senders();

  HostQueue queue_;
  QueueHead* head_ = nullptr;
  std::size_t receiver_ = 0;
  std::size_t num_pes_ = 0;
  std::array<std::uint64_t, kMostQueuePes / 64> known_senders_{};
  // The bell, then the rings of the senders that have sent. A poll reads these alone.
  std::vector<NextTurn> next_;
  NextTurn* at_ = nullptr;  // in next_, or its end: is asked first
  std::vector<RingReceiver> rings_;
  bool is_closed_ = false;
};

}  // namespace weft::machine
