#include "machine/host_queue/host_queue.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace weft::machine {

base::Status take_part_in_fences() {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0) return {};
  return {
      base::StatusCode::kUnsupported,
      base::format("queues between the PEs of this host: membarrier failed with '{}'", std::strerror(errno))};
}

void fence_of_sleeper() { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

HostQueueSender::Sent HostQueueSender::send_special(AmId id, std::span<const std::byte> header,
                                                    std::span<const std::byte> payload) {
  if (head_ == nullptr) return Sent::kNo;
  const QueueState state = head_->state.load(std::memory_order_relaxed);
  if (state == QueueState::kEnded) return Sent::kYes;
  if (state != QueueState::kAwake && state != QueueState::kAsleep) return Sent::kNo;
  if (!ring_.takes(header.size(), payload.size())) return Sent::kNo;
  if (is_held_ || !ring_.send(id, header, payload)) return Sent::kFull;
  if (!has_sent_) {
    has_sent_ = true;
    head_->senders[number_ / 64].fetch_or(std::uint64_t{1} << number_ % 64, std::memory_order_relaxed);
    // Read-modify-write operations, here and at the receiver: it sees the bits of all that have rung before.
    head_->bell.exchange(QueueHead::kRung, std::memory_order_acq_rel);
  }
  is_plain_ = true;
  return look_for_sleeper();
}

bool HostQueueSender::is_first_to_wake() {
  QueueState asleep = QueueState::kAsleep;
  return head_->state.compare_exchange_strong(asleep, QueueState::kAwake);
}

HostQueueReceiver::HostQueueReceiver(const HostQueue& queue, std::size_t receiver, std::size_t num_pes)
    : queue_(queue), head_(&queue.head()), receiver_(receiver), num_pes_(num_pes) {
  // No memory is needed when a sender has written already.
  next_.reserve(num_pes + 1);
  rings_.reserve(num_pes);
  next_.push_back({&head_->bell, QueueHead::kRung});
  at_ = next_.data();
}

void HostQueueReceiver::close() {
  head_->state.store(QueueState::kEnded);
  for (NextTurn& next : next_) next.stop();
  is_closed_ = true;
}

bool HostQueueReceiver::admit_senders() {
  head_->bell.exchange(0, std::memory_order_acq_rel);
  for (std::size_t word = 0; word < (num_pes_ + 63) / 64; ++word) {
    std::uint64_t left = head_->senders[word].load(std::memory_order_relaxed) & ~known_senders_[word];
    known_senders_[word] |= left;
    for (; left != 0; left &= left - 1) {
      const std::size_t sender = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (sender >= num_pes_ || sender == receiver_) continue;
      next_.push_back(rings_.emplace_back(queue_.ring(sender)).first());
    }
  }
  at_ = next_.data();
  return find_message(at_ + 1, next_.data() + next_.size());
}

}  // namespace weft::machine
