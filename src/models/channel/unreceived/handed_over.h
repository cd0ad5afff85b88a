// Messages whose memory the sender has given away, to an end on the same PE: the receiver gets the memory itself.
//
// Nothing of such a message is in the machine. It has a number and counts in the window as every other message. If the
// receiving chare moves first, its bytes travel with it (TravellingMessages), and come with their tag on the new PE.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "weft/runtime/attachment.h"

namespace weft::channel {

class HandedOver {
 public:
  // Numbers are counted up, and may wrap.
  void push(std::uint32_t number, runtime::Attachment block) {
    messages_.push_back({number, std::move(block)});
  }
  bool is_next(std::uint32_t number) const {
    return !messages_.empty() && messages_.front().number == number;
  }
  // The memory of that message; empty if it was not handed over. REQUIRES: no number twice, and in order.
  runtime::Attachment take(std::uint32_t number) {
    if (!is_next(number)) return {};
    runtime::Attachment block = std::move(messages_.front().block);
    messages_.pop_front();
    return block;
  }
  void clear() { messages_.clear(); }

 private:
  struct Message {
    std::uint32_t number;
    runtime::Attachment block;
  };
  std::deque<Message> messages_;
};

}  // namespace weft::channel
