#include "models/channel/closed_ends.h"

#include <memory>
#include <utility>

namespace weft::channel {

namespace {

// Whether an end is idle: operations that the program started are over, and the peer starts no more.
bool is_idle(const ChannelEnd& end) {
  return end.peer_is_closed && end.receives_in_flight() == 0 && end.watched_sends == 0;
}

// Peer memory ends some receives a turn after their completion.
bool is_in_use(const ChannelEnd& end) { return end.in.receives != 0 || end.in.held_sends != 0; }

// A live end may receive what was sent before, and stays itself; a closed one stays while its chare does, which may be kept by
// another end, or Python objects hold it.
bool is_over(const ChannelEnd& end) {
  if (!end.is_closed) return static_cast<std::int32_t>(end.in.next - end.incoming_end) >= 0;
  return end.holders == 0 && end.chare_alive.expired();
}

}  // namespace

void ClosedEnds::poll_later(const ChannelEnd& end) {
  if (runtime_.closed()) return;
  if (numbers_.empty() || numbers_.back() != end.number) numbers_.push_back(end.number);
  post_poll();
}

void ClosedEnds::post_poll() {
  if (std::exchange(poll_.is_posted, true)) return;
  poll_.waits = true;
  runtime_.post(&poll_);
}

void ClosedEnds::Poll::turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
  auto& poll = *static_cast<Poll*>(self);
  if (action == runtime::WorkAction::kRun && std::exchange(poll.waits, false)) return runtime.post(&poll);
  poll.is_posted = false;
  if (action == runtime::WorkAction::kRun) poll.owner.poll();
}

void ClosedEnds::poll() {
  for (const std::uint32_t number : std::exchange(numbers_, {})) {
    ChannelEnd* const end = ends_.find(number);
    if (end == nullptr) continue;
    moves_(*end);
    if (!is_idle(*end)) continue;
    if (is_in_use(*end)) {
      poll_later(*end);
      continue;
    }
    if (std::shared_ptr<void> chare = std::exchange(end->chare, nullptr); chare != nullptr) {
      chare.reset();  // its destructor may call anything
      ends_.for_each_of(end->key.self_collection, end->key.self_index,
                        [this](const ChannelEnd& other) { poll_later(other); });
    } else if (is_over(*end)) {
      over_(*end);
    }
  }
}

}  // namespace weft::channel
