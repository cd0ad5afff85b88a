// The queue in shared memory through which a PE receives small active messages from the other PEs of its host: a ring for each of
// them, which keeps their order. What a full ring does not take waits at the sender, see HostQueues.
//
// A receiver that sleeps says so in `state`. The sender that changes it back wakes the receiver. A sender says in `senders` that it has
// sent: a receiver looks at the rings of these alone, because a look at memory of a shared file takes a page.
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

// Hosts with more PEs have no queues.
inline constexpr std::size_t kMostQueuePes = 1024;

// The head of a queue, which all its senders read.
struct alignas(64) QueueHead {
  std::atomic<QueueState> state;
  // The name of the receiver's socket in the abstract namespace, as bind() chose it.
  std::array<char, 6> socket_name;
  // The bytes of a datagram that wakes the receiver: a random number.
  std::array<std::byte, 8> wake_word;
  // A bit for each sender that has sent a message, and how many there are: a receiver that polls reads one word.
  alignas(64) std::atomic<std::uint64_t> num_senders;
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
      : head_(&queue.head()), ring_(queue.ring(sender)), number_(sender) {}

  enum class Sent : std::uint8_t { kNo, kYes, kToSleeper, kFull };
  // kNo when the queue is not open, or the message too large: it must go another way. kFull when there is no room now. After
  // kToSleeper the caller must wake the receiver. A message to a receiver that has closed is dropped, and kYes.
  Sent send(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
    const QueueState state = head_->state.load(std::memory_order_relaxed);
    if (state != QueueState::kAwake && state != QueueState::kAsleep) [[unlikely]]
      return state == QueueState::kEnded ? Sent::kYes : Sent::kNo;
    const std::size_t cells = ring_.cells_for(header.size(), payload.size());
    if (cells == 0) [[unlikely]]
      return Sent::kNo;
    if (is_held_ || !ring_.send(id, header, payload, cells)) [[unlikely]]
      return Sent::kFull;
    if (!has_sent_) [[unlikely]] {
      has_sent_ = true;
      head_->senders[number_ / 64].fetch_or(std::uint64_t{1} << number_ % 64, std::memory_order_release);
      head_->num_senders.fetch_add(1, std::memory_order_release);
    }
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
  std::size_t number_;
  bool has_sent_ = false;
  bool is_held_ = false;
};

// The receiver's end.
class HostQueueReceiver {
 public:
  HostQueueReceiver() = default;
  // `receiver`: the PE's own number on the host, among `num_pes`.
  HostQueueReceiver(const HostQueue& queue, std::size_t receiver, std::size_t num_pes)
      : queue_(queue),
        head_(&queue.head()),
        num_senders_(&queue.head().num_senders),
        receiver_(receiver),
        num_pes_(num_pes) {}

  void open() { head_->state.store(QueueState::kAwake); }
  // May be called by what delivers.
  void close() {
    head_->state.store(QueueState::kEnded);
    for (RingReceiver& ring : rings_) ring.stop();
    is_closed_ = true;
  }

  bool has_message() const {
    return std::ranges::any_of(rings_, [](const RingReceiver& ring) { return ring.has_message(); }) ||
           has_new_sender();
  }
  // Calls deliver(id, header, payload) for the messages that are here, up to `most`, until deliver() returns true. The next call
  // begins with the ring behind the last one. `num_broken` grows by the rings that are not read any more, see RingReceiver.
  template <class Deliver>
  void receive(int most, int& num_broken, Deliver deliver) {
    if (has_new_sender()) [[unlikely]]
      admit_senders();
    for (std::size_t asked = 0; asked < rings_.size() && most > 0; ++asked) {
      RingReceiver& ring = rings_[first_];
      first_ = first_ + 1 == rings_.size() ? 0 : first_ + 1;
      for (; most > 0; --most) {
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
  bool has_new_sender() const {
    return num_senders_->load(std::memory_order_acquire) != num_known_ && !is_closed_;
  }
  [[gnu::cold, gnu::noinline]] void admit_senders() {
    num_known_ = num_senders_->load(std::memory_order_acquire);
    for (std::size_t word = 0; word < (num_pes_ + 63) / 64; ++word) {
      std::uint64_t left = head_->senders[word].load(std::memory_order_acquire) & ~known_senders_[word];
      known_senders_[word] |= left;
      for (; left != 0; left &= left - 1) {
        const std::size_t sender = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
        if (sender < num_pes_ && sender != receiver_) rings_.emplace_back(queue_.ring(sender));
      }
    }
  }

  inline static const std::atomic<std::uint64_t> kNoSenders{0};

  HostQueue queue_;
  QueueHead* head_ = nullptr;
  const std::atomic<std::uint64_t>* num_senders_ = &kNoSenders;
  std::uint64_t num_known_ = 0;
  std::size_t receiver_ = 0;
  std::size_t num_pes_ = 0;
  std::array<std::uint64_t, kMostQueuePes / 64> known_senders_{};
  std::vector<RingReceiver> rings_;  // of the senders that have sent
  std::size_t first_ = 0;            // the ring that is asked first
  bool is_closed_ = false;
};

}  // namespace weft::machine
