// The messages that one element has sent to other elements of its collection since its last report to the load balancer.
//
// The table is bounded. If it is full, the half of it with the fewest bytes is forgotten: receivers of many bytes stay.
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/runtime/observer.h"

namespace weft::chare {

// Travels as its bytes.
struct SentTo {
  std::uint64_t index = 0;  // of the receiver
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SentTo&, const SentTo&) = default;
};
static_assert(std::is_trivially_copyable_v<SentTo> && sizeof(SentTo) == 24);

class SentMessages {
 public:
  static constexpr std::size_t kMostReceivers = 64;
  // Counts end there. They keep all sums of a load balancer within 64 bits.
  static constexpr std::uint64_t kMostMessages = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

  explicit SentMessages(runtime::ElementId sender) : sender_(sender) {}

  // Messages to the sender itself, and to elements of other collections, do not count.
  void add(runtime::ElementId to, std::uint64_t size_bytes) {
    if (to.collection != sender_.collection || to.index == sender_.index) return;
    // Programs repeat themselves: the receiver is often the one behind the last one, or the last one.
    if (last_ + 1 < sent_.size() && sent_[last_ + 1].index == to.index) {
      ++last_;
    } else if (last_ >= sent_.size() || sent_[last_].index != to.index) {
      find_or_make(to.index);
    }
    count(sent_[last_], 1, size_bytes);
  }

  // In the order of their indices.
  std::vector<SentTo> sorted() const;
  void clear() {
    sent_.clear();
    last_ = 0;
  }
  // Whether they can be sorted() of that sender, in a collection of that size: what a peer sends is a claim.
  static bool are_valid(std::span<const SentTo> sent, std::uint64_t sender, std::uint64_t collection_size);
  // Takes over the messages that the element has sent on another PE. REQUIRES: are_valid(); nothing has been added.
  void restore(std::vector<SentTo> sent) {
    sent_ = std::move(sent);
    last_ = 0;
  }

 private:
  static void count(SentTo& to, std::uint64_t messages, std::uint64_t size_bytes) {
    to.messages = to.messages + messages < kMostMessages ? to.messages + messages : kMostMessages;
    to.bytes = size_bytes < kMostBytes - to.bytes ? to.bytes + size_bytes : kMostBytes;
  }
  // Sets last_.
  void find_or_make(std::uint64_t index);

  runtime::ElementId sender_;
  std::vector<SentTo> sent_;
  std::size_t last_ = 0;  // the position of the last receiver
};

}  // namespace weft::chare
