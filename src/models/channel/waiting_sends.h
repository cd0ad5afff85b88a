// The sends of a channel end that wait at the sender: for the peer to make its end, or for room in the window.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"

#include "models/channel/description.h"

namespace weft::channel {

struct WaitingSend {
  memory::ConstBuffer buffer;
  runtime::OperationState* operation;
  Description description;  // in check mode
  std::int64_t held_bytes;  // of memory of the runtime
};

class WaitingSends {
 public:
  bool empty() const { return sends_.empty(); }
  std::size_t size() const { return sends_.size(); }
  std::int64_t held_bytes() const { return held_bytes_; }
  bool contains(const runtime::OperationState& operation) const {
    return std::ranges::any_of(sends_, [&](const WaitingSend& one) { return one.operation == &operation; });
  }
  void push(WaitingSend send) {
    held_bytes_ += send.held_bytes;
    sends_.push_back(std::move(send));
  }
  // REQUIRES: not empty.
  WaitingSend pop() {
    WaitingSend send = std::move(sends_.front());
    sends_.pop_front();
    held_bytes_ -= send.held_bytes;
    return send;
  }

  // Until here no send waits inside its call again, see Channels::await_room().
  std::int64_t passes_until_bytes = 0;

 private:
  std::deque<WaitingSend> sends_;
  std::int64_t held_bytes_ = 0;
};

}  // namespace weft::channel
