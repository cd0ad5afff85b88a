#include "models/channel/closed_ends.h"

#include <memory>
#include <utility>

namespace weft::channel {

namespace {

bool is_idle(const ChannelEnd& end) {
  return end.peer_is_closed && end.receives_in_flight() == 0 && end.watched_sends == 0 &&
         end.in.receives == 0 && end.in.held_sends == 0;
}

// A live end may receive what was sent before, and stays itself; a closed one stays while Python objects hold it.
bool is_over(const ChannelEnd& end) {
  return end.is_closed ? end.holders == 0 : static_cast<std::int32_t>(end.in.next - end.incoming_end) >= 0;
}

}  // namespace

void ClosedEnds::look_later(const ChannelEnd& end) {
  if (runtime_.closed()) return;
  if (numbers_.empty() || numbers_.back() != end.number) numbers_.push_back(end.number);
  if (!std::exchange(look_.is_posted, true)) runtime_.post(&look_);
}

void ClosedEnds::Look::turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
  auto& look = *static_cast<Look*>(self);
  look.is_posted = false;
  if (action == runtime::WorkAction::kRun) look.owner.look();
}

void ClosedEnds::look() {
  for (const std::uint32_t number : std::exchange(numbers_, {})) {
    ChannelEnd* const end = ends_.find(number);
    if (end == nullptr || !is_idle(*end)) continue;
    // The chare goes, and with it what holds the end. Its destructor may call anything.
    {
      const std::shared_ptr<void> chare = std::exchange(end->chare, nullptr);
    }
    if (is_over(*end)) over_(*end);
  }
}

}  // namespace weft::channel
