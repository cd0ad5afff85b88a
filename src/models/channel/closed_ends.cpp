#include "models/channel/closed_ends.h"

#include <utility>

namespace weft::channel {

namespace {

bool is_over(const ChannelEnd& end) {
  const bool is_answered = end.peer.number == 0 || end.peer_is_closed;
  return is_answered && end.receives_in_flight() == 0 && end.watched_sends == 0 && end.holders == 0 &&
         end.in.receives == 0 && end.in.held_sends == 0;
}

}  // namespace

void ClosedEnds::look_later() {
  if (numbers_.empty() || runtime_.closed() || std::exchange(look_.is_posted, true)) return;
  runtime_.post(&look_);
}

void ClosedEnds::Look::turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
  auto& look = *static_cast<Look*>(self);
  look.is_posted = false;
  if (action == runtime::WorkAction::kRun) look.owner.look();
}

void ClosedEnds::look() {
  std::erase_if(numbers_, [this](std::uint32_t number) {
    ChannelEnd& end = *ends_.find(number);
    if (!is_over(end)) return false;
    free_(end);
    return true;
  });
}

}  // namespace weft::channel
