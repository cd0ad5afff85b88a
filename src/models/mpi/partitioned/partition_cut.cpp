#include "models/mpi/partitioned/partition_cut.h"

#include <algorithm>
#include <limits>

namespace weft::mpi {

std::optional<std::int64_t> Partitions::checked_bytes() const {
  if (number < 0 || size_bytes < 0 || granule_bytes < 1) return {};
  if (size_bytes != 0 && number > std::numeric_limits<std::int64_t>::max() / size_bytes) return {};
  return total_bytes();
}

PartitionCut::PartitionCut(const Partitions& sender, const Partitions& receiver,
                           std::int64_t most_combined_bytes)
    : sender_(sender), receiver_(receiver) {
  const std::int64_t last = sender.number;
  if (sender.total_bytes() == 0 || sender.total_bytes() > receiver.total_bytes()) {
    ends_.push_back(last);
    return;
  }
  std::int64_t begin_byte = 0;
  for (std::int64_t end = 1; end < last; ++end) {
    const std::int64_t end_byte = end * sender.size_bytes;
    const bool is_full = end_byte - begin_byte > most_combined_bytes - sender.size_bytes;
    const bool is_told_apart = end_byte / receiver.size_bytes > begin_byte / receiver.size_bytes;
    if ((!is_full && !is_told_apart) || end_byte % receiver.granule_bytes != 0) continue;
    ends_.push_back(end);
    begin_byte = end_byte;
  }
  ends_.push_back(last);
}

std::size_t PartitionCut::message_of(std::int64_t sender_partition) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), sender_partition);
  return static_cast<std::size_t>(found - ends_.begin());
}

PartitionCut::Range PartitionCut::messages_of(std::int64_t receiver_partition) const {
  if (num_messages() == 1 || receiver_.size_bytes == 0) return {0, num_messages()};
  // The sender may have fewer bytes: what is behind them comes with the last message.
  const std::int64_t last_byte = sender_.total_bytes() - 1;
  const std::int64_t from = std::min(receiver_partition * receiver_.size_bytes, last_byte);
  const std::int64_t to = std::min((receiver_partition + 1) * receiver_.size_bytes - 1, last_byte);
  return {message_of(from / sender_.size_bytes), message_of(to / sender_.size_bytes) + 1};
}

}  // namespace weft::mpi
