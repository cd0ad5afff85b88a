// The sizes of the messages in place that an end has sent and the peer has not reported as received. A peer that moves must
// receive them early, and no message says its size before it is received. All other messages have up to kCopyLimitBytes.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::channel {

struct SentSize {
  std::uint32_t number = 0;
  std::uint32_t reserved = 0;
  std::uint64_t size_bytes = 0;
};

class SentSizes {
 public:
  // Numbers are counted up, and may wrap.
  void push(std::uint32_t number, std::size_t size_bytes) { sizes_.push_back({number, 0, size_bytes}); }
  // The peer has received all messages before number `next`.
  void forget_before(std::uint32_t next) {
    while (first_ < sizes_.size() && is_before(sizes_[first_].number, next)) ++first_;
    if (first_ < sizes_.size() / 2) return;
    sizes_.erase(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  std::vector<SentSize> all() const {
    return {sizes_.begin() + static_cast<std::ptrdiff_t>(first_), sizes_.end()};
  }
  // Those from number `next` on.
  std::vector<SentSize> from(std::uint32_t next) const {
    std::vector<SentSize> found;
    for (std::size_t i = first_; i < sizes_.size(); ++i) {
      if (!is_before(sizes_[i].number, next)) found.push_back(sizes_[i]);
    }
    return found;
  }

 private:
  static bool is_before(std::uint32_t number, std::uint32_t next) {
    return static_cast<std::int32_t>(next - number) > 0;
  }

  std::vector<SentSize> sizes_;
  std::size_t first_ = 0;  // those before it are forgotten
};

}  // namespace weft::channel
