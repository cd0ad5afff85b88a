// The queue in shared memory through which a PE receives small active messages from the other PEs of its host: a ring for each of
// them, which keeps their order. What a full ring does not take waits at the sender, see HostQueues.
//
// A receiver that sleeps says so in `state`. The sender that changes it back wakes the receiver.
//
// Threads: one receiver; one sender for each ring. All zeros is a queue without messages that is not open. A sender that is killed while
// it writes a message stops its ring; a job ends when one of its PEs dies.
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

// The head of a queue, which all its senders read.
struct alignas(64) QueueHead {
  std::atomic<QueueState> state;
  // The name of the receiver's socket in the abstract namespace, as bind() chose it.
  std::array<char, 6> socket_name;
  // The bytes of a datagram that wakes the receiver: a random number.
  std::array<std::byte, 8> wake_word;
};

// The memory of a queue: the head, then the rings by the number of their sender on the host.
class HostQueue {
 public:
  HostQueue() = default;
  // `memory`: size_bytes(num_pes) bytes, aligned to a cache line. `num_pes`: those of the host.
  HostQueue(std::byte* memory, std::size_t num_pes) : memory_(memory), num_cells_(cells_for(num_pes)) {}

  // 32 KiB for each pair of PEs, and less where more than 8 PEs share a host. Only what messages have touched takes memory.
  static constexpr std::size_t cells_for(std::size_t num_pes) {
    return std::clamp<std::size_t>(std::bit_floor(std::size_t{4096} / num_pes), 32, 512);
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
class HostQueueSender {
 public:
  HostQueueSender(const HostQueue& queue, std::size_t sender)
      : head_(&queue.head()), ring_(queue.ring(sender)) {}

  enum class Sent : std::uint8_t { kNo, kYes, kToSleeper, kFull };
  // kNo when the queue is not open, or the message too large: it must go another way. kFull when there is no room now. After
  // kToSleeper the caller must wake the receiver. A message to a receiver that has closed is dropped, and kYes.
  Sent send(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    const QueueState state = head_->state.load(std::memory_order_relaxed);
    if (state != QueueState::kAwake && state != QueueState::kAsleep) [[unlikely]]
      return state == QueueState::kEnded ? Sent::kYes : Sent::kNo;
    if (!ring_.holds(header.size(), payload.size())) [[unlikely]]
      return Sent::kNo;
    if (is_held_ || !ring_.send(id, header, payload)) [[unlikely]]
      return Sent::kFull;
    has_sent_ = true;
    // Either this side sees the sleeper or the sleeper sees the message: the sleeper runs fence_of_sleeper(), so that this
    // side, whose path matters, needs no fence of its own.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    QueueState asleep = QueueState::kAsleep;
    const bool wakes = head_->state.load(std::memory_order_relaxed) == QueueState::kAsleep &&
                       head_->state.compare_exchange_strong(asleep, QueueState::kAwake);
    return wakes ? Sent::kToSleeper : Sent::kYes;
  }

  // Until release() all messages find the ring full: earlier ones wait.
  void hold() { is_held_ = true; }
  void release() { is_held_ = false; }

  const QueueHead& head() const { return *head_; }
  bool has_sent() const { return has_sent_; }

 private:
  QueueHead* head_;
  RingSender ring_;
  bool has_sent_ = false;
  bool is_held_ = false;
};

// The receiver's end.
class HostQueueReceiver {
 public:
  HostQueueReceiver() = default;
  // `receiver`: the PE's own number on the host, among `num_pes`.
  HostQueueReceiver(const HostQueue& queue, std::size_t receiver, std::size_t num_pes)
      : head_(&queue.head()) {
    for (std::size_t sender = 0; sender < num_pes; ++sender) {
      if (sender != receiver) rings_.emplace_back(queue.ring(sender));
    }
  }

  void open() { head_->state.store(QueueState::kAwake); }
  // May be called by what delivers.
  void close() {
    head_->state.store(QueueState::kEnded);
    for (RingReceiver& ring : rings_) ring.stop();
    is_closed_ = true;
  }

  bool has_message() const {
    return std::ranges::any_of(rings_, [](const RingReceiver& ring) { return ring.has_message(); });
  }
  // Calls deliver(id, header, payload) for the messages that are here, up to `most_of_each` of each ring, until deliver() returns true.
  // The next call begins with the ring behind the last one. `num_broken` grows by the rings that are not read any more, see
  // RingReceiver.
  template <class Deliver>
  void receive(int most_of_each, int& num_broken, Deliver deliver) {
    for (std::size_t asked = 0; asked < rings_.size(); ++asked) {
      RingReceiver& ring = rings_[first_];
      first_ = first_ + 1 == rings_.size() ? 0 : first_ + 1;
      for (int left = most_of_each; left > 0; --left) {
        const RingReceiver::Received one = ring.receive(deliver);
        if (one == RingReceiver::Received::kMessage) [[likely]]
          continue;
        if (one == RingReceiver::Received::kEnough) return;
        if (one == RingReceiver::Received::kBroken) ++num_broken;
        break;
      }
    }
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
  QueueHead* head_ = nullptr;
  std::vector<RingReceiver> rings_;
  std::size_t first_ = 0;
  bool is_closed_ = false;
};

}  // namespace weft::machine
