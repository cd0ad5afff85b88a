// Messages whose memory the sender has given away, to an end on the same PE: the receiver gets the memory itself.
//
// Nothing of such a message is in the machine. It has a number as every other message. The window, which counts little of large
// messages, does not bound the memory here: an end that holds kMostBytes takes no more. The sender then sends the bytes with
// their tag, and an awaited send waits for the receive. If the receiving chare moves first, the bytes travel with it
// (TravellingMessages), and come with their tag on the new PE.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "weft/runtime/attachment.h"

namespace weft::channel {

class HandedOver {
 public:
  // As a segment of the window holds of small messages. It is exceeded by less than one message.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  bool has_room() const { return size_bytes_ < kMostBytes; }
  // Numbers are counted up, and may wrap.
  void push(std::uint32_t number, runtime::Attachment block) {
    size_bytes_ += block.buffer().size_bytes;
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
    size_bytes_ -= block.buffer().size_bytes;
    return block;
  }
  void clear() {
    messages_.clear();
    size_bytes_ = 0;
  }

 private:
  struct Message {
    std::uint32_t number;
    runtime::Attachment block;
  };
  std::deque<Message> messages_;
  std::size_t size_bytes_ = 0;  // of all blocks
};

}  // namespace weft::channel
