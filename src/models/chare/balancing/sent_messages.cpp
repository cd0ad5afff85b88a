#include "weft/chare/sent_messages.h"

#include <algorithm>
#include <tuple>

namespace weft::chare {

void SentMessages::find_or_make(std::uint64_t index) {
  const auto found = std::ranges::find(sent_, index, &SentTo::index);
  last_ = static_cast<std::size_t>(found - sent_.begin());
  if (found != sent_.end()) return;
  if (sent_.size() == kMostReceivers) {
    const auto heavier = [](const SentTo& a, const SentTo& b) {
      return std::tie(a.bytes, a.messages) > std::tie(b.bytes, b.messages);
    };
    const auto half = sent_.begin() + kMostReceivers / 2;
    std::nth_element(sent_.begin(), half, sent_.end(), heavier);
    sent_.erase(half, sent_.end());
    last_ = sent_.size();
  }
  sent_.push_back({index, 0, 0});
}

std::vector<SentTo> SentMessages::sorted() const {
  std::vector<SentTo> sent = sent_;
  std::ranges::sort(sent, {}, &SentTo::index);
  return sent;
}

bool SentMessages::are_valid(std::span<const SentTo> sent, std::uint64_t sender,
                             std::uint64_t collection_size) {
  if (sent.size() > kMostReceivers) return false;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const SentTo& to = sent[i];
    if (to.index >= collection_size || to.index == sender || (i > 0 && to.index <= sent[i - 1].index) ||
        to.messages == 0 || to.messages > kMostMessages || to.bytes > kMostBytes) {
      return false;
    }
  }
  return true;
}

}  // namespace weft::chare
