// Channel ends that are closed, or whose peers are, until nothing of them is in flight; and ends that wait for the end of
// operations because their chare moves, or their peer has.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/channel/end_table.h"

namespace weft::channel {

class ClosedEnds {
 public:
  // `over` is called for an end of which nothing is in flight, and may erase it. `moves` is called for each end that is
  // polled. Both references must outlive it.
  ClosedEnds(runtime::Runtime& runtime, const EndTable& ends, std::function<void(ChannelEnd&)> over,
             std::function<void(ChannelEnd&)> moves)
      : runtime_(runtime), ends_(ends), over_(std::move(over)), moves_(std::move(moves)) {}
  ClosedEnds(const ClosedEnds&) = delete;
  ClosedEnds& operator=(const ClosedEnds&) = delete;

  // An operation of the end is over. Polls, two turns later, whether all are: the caller may be a completion that uses the end, and
  // what waits for that completion runs in the next turn.
  void poll_later(const ChannelEnd& end);

 private:
  struct Poll : runtime::Work {
    explicit Poll(ClosedEnds& owner_in) : runtime::Work(&Poll::turn), owner(owner_in) {}
    static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action);
    ClosedEnds& owner;
    bool is_posted = false;
    bool waits = false;  // for the next turn
  };
  void poll();
  void post_poll();

  runtime::Runtime& runtime_;
  const EndTable& ends_;
  std::function<void(ChannelEnd&)> over_;
  std::function<void(ChannelEnd&)> moves_;
  std::vector<std::uint32_t> numbers_;  // of the ends to poll
  Poll poll_{*this};
};

}  // namespace weft::channel
