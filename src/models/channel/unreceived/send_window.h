// Flow control of one direction of a channel: messages that no receive has taken yet wait in the receiver's memory, so a
// sender may be ahead of the receives by a window only.
//
// A report names a message and not bytes, because the two ends may disagree on the size of a message: one with a wrong
// size, or whose send has failed. A window by bytes would then lose room for ever.
//
// The sender divides its messages into segments. The receiver reports how many messages it has received, once for each
// half of a segment. While kSegments segments are not reported, sends wait in the sender's end. A send counts up to
// machine::kLeastHeldBytes of its size, because larger messages stay in the sender's buffer until they are received. Those that are
// handed over within a PE do not: HandedOver bounds them by bytes.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "machine/message_sizes.h"
#include "runtime/message/credit_window.h"

namespace weft::channel {

inline constexpr std::int64_t kSegmentBytes = std::int64_t{4} << 20;
inline constexpr std::uint32_t kSegments = 8;

// More messages than this are never between a sender and its receiver: the windows hold fewer.
inline constexpr std::int32_t kMostUnreceived = std::int32_t{1} << 20;
static_assert(kMostUnreceived > (kSegments + 1) * (kSegmentBytes / machine::kKeptMessageBytes));

constexpr std::int64_t window_cost(std::size_t size_bytes) {
  return machine::kKeptMessageBytes +
         (size_bytes < machine::kLeastHeldBytes ? static_cast<std::int64_t>(size_bytes) : 0);
}

class SendWindow {
 public:
  // For a window that a peer has sent.
  bool is_valid() const {
    return first_ < kSegments && num_segments_ <= kSegments && left_.bytes >= 0 &&
           left_.bytes <= kSegmentBytes;
  }
  bool is_open() const { return num_segments_ < kSegments; }
  // Counts a message that is sent. Returns whether it is the last one of its segment; then call end_segment().
  bool count(std::size_t size_bytes) { return !left_.take(window_cost(size_bytes)); }
  // As count(), for messages of less than machine::kLeastHeldBytes.
  bool count_small(std::size_t size_bytes) {
    return !left_.take(machine::kKeptMessageBytes + static_cast<std::int64_t>(size_bytes));
  }
  // `next` is the number of the next message. REQUIRES: is_open().
  void end_segment(std::uint32_t next) {
    ends_[(first_ + num_segments_++) % kSegments] = next;
    left_.bytes = kSegmentBytes;
  }
  // The receiver says that it has received all messages before number `next`. Numbers wrap. A claim of more than was sent
  // does no harm: it opens the window, as the receipt of all that was sent does.
  void received(std::uint32_t next) {
    while (num_segments_ > 0 && static_cast<std::int32_t>(next - ends_[first_]) >= 0) {
      first_ = (first_ + 1) % kSegments;
      --num_segments_;
    }
  }

 private:
  runtime::SendRoom left_{kSegmentBytes};        // of the current segment
  std::array<std::uint32_t, kSegments> ends_{};  // a ring: the number behind the last message of each segment
  std::uint32_t first_ = 0;
  std::uint32_t num_segments_ = 0;
};

// The receiver's side.
class ReceiveCount {
 public:
  // Counts a message that was received. Returns whether the sender should be told.
  bool count(std::size_t size_bytes) {
    ++next_;
    return owed_.add(window_cost(size_bytes));
  }
  void start_at(std::uint32_t number) { next_ = number; }
  // For a count that a peer has sent.
  bool is_valid() const { return owed_.is_valid(kSegmentBytes / 2); }
  bool is_due() const { return owed_.is_due(); }
  // As many as have been received, from the first number on.
  std::uint32_t next() const { return next_; }
  // Every message is due from now on.
  void report_each() { owed_.report_each(); }
  // The number to report: that of the first message that is not received, if they are received in order.
  std::uint32_t report() {
    owed_.restart(kSegmentBytes / 2);
    return next_;
  }

 private:
  runtime::OwedCredit owed_{kSegmentBytes / 2};
  std::uint32_t next_ = 0;
};

}  // namespace weft::channel
