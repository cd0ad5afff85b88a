// Flow control by bytes between two PEs or two ends: the room that a sender has, and the credit that a receiver owes it.
// Messages, channels and MPI use it, each with a window and a share of the window that is worth a report.
//
// The bytes that a peer gives back are a claim: SendRoom::give_back() refuses more than the caller says is outstanding.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

namespace weft::runtime {

// At the sender: the window less the bytes that are outstanding.
struct SendRoom {
  std::int64_t bytes = 0;

  // Charges a message. Returns whether there was room for all of it; it is charged either way.
  bool take(std::int64_t cost_bytes) {
    bytes -= cost_bytes;
    return bytes >= 0;
  }
  bool has(std::int64_t cost_bytes) const { return bytes >= cost_bytes; }
  // A peer reports that many bytes. Returns whether this can be; if not, nothing has changed.
  [[nodiscard]] bool give_back(std::uint64_t claimed_bytes, std::int64_t outstanding_bytes) {
    if (std::cmp_greater(claimed_bytes, outstanding_bytes)) return false;
    bytes += static_cast<std::int64_t>(claimed_bytes);
    return true;
  }
};

// At the receiver: the bytes handled since the last report, less the share that is worth a report. A report is due from 0
// on, so that each message costs one addition and the test of a sign.
class OwedCredit {
 public:
  OwedCredit() = default;
  explicit OwedCredit(std::int64_t share_bytes) : bytes_(-share_bytes) {}

  // Counts a message that was handled. Returns whether a report is due.
  bool add(std::int64_t cost_bytes) {
    bytes_ += cost_bytes;
    return is_due();
  }
  bool is_due() const { return bytes_ >= 0; }
  // For a credit that a peer has sent: whether it can be, so that no sum overflows and a report becomes due.
  bool is_valid(std::int64_t share_bytes) const { return bytes_ >= -share_bytes && bytes_ <= kMostBytes; }
  // The bytes since the last report. `share_bytes`: that of the last restart().
  std::int64_t unreported_bytes(std::int64_t share_bytes) const { return bytes_ + share_bytes; }
  // All is reported; the next report is due after that many bytes.
  void restart(std::int64_t share_bytes) { bytes_ = -share_bytes; }
  // A report is due after each message from now on, until restart().
  void report_each() { bytes_ = kMostBytes / 2; }

 private:
  static constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 2;

  std::int64_t bytes_ = 0;
};

// Both, of a PE and one peer.
struct CreditWindow {
  SendRoom room;
  OwedCredit owed;
};

}  // namespace weft::runtime
