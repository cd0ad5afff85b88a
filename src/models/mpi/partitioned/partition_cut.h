// How a partitioned message is cut into messages, when both ends have partitions of their own.
//
// Both ends compute the same cut from the same numbers. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::mpi {

// The partitions of one end. All are of one size.
struct Partitions {
  std::int64_t number = 0;
  std::int64_t size_bytes = 0;  // of one
  // A message may only be cut at a multiple of it: the size of an element with gaps, or 1.
  std::int64_t granule_bytes = 1;

  // Nothing if no memory is that large, or a number is negative. For numbers of a peer.
  std::optional<std::int64_t> checked_bytes() const;
  // REQUIRES: checked_bytes().
  std::int64_t total_bytes() const { return number * size_bytes; }
};

// Cuts at boundaries of the sender's partitions. A message takes in further partitions of the sender until
// - the receiver has a boundary in it: the receiver learns of each of its partitions as early as it can, or
// - it would be larger than `most_combined_bytes`.
// Data that the receiver has no memory for, and no data, is one message.
class PartitionCut {
 public:
  // REQUIRES: both have checked_bytes(), and total_bytes() of the smaller one is the size of memory of this process.
  PartitionCut(const Partitions& sender, const Partitions& receiver, std::int64_t most_combined_bytes);

  std::size_t num_messages() const { return ends_.size(); }
  // The sender's partitions in a message: [first, end).
  std::int64_t first_partition(std::size_t message) const { return message == 0 ? 0 : ends_[message - 1]; }
  std::int64_t end_partition(std::size_t message) const { return ends_[message]; }
  // The bytes of a message: [first, end).
  std::int64_t first_byte(std::size_t message) const { return first_partition(message) * sender_.size_bytes; }
  std::int64_t end_byte(std::size_t message) const { return end_partition(message) * sender_.size_bytes; }

  // The message that takes a partition of the sender.
  std::size_t message_of(std::int64_t sender_partition) const;
  // The messages [first, end) that a partition of the receiver consists of.
  struct Range {
    std::size_t first = 0;
    std::size_t end = 0;
  };
  Range messages_of(std::int64_t receiver_partition) const;

 private:
  Partitions sender_;
  Partitions receiver_;
  std::vector<std::int64_t> ends_;  // of each message: the sender's partition behind it
};

}  // namespace weft::mpi
