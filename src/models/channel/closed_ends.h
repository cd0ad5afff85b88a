// The closed channel ends of a PE, from the end of their chares until nothing of them is in flight.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/channel/end_table.h"

namespace weft::channel {

class ClosedEnds {
 public:
  // `free` erases an end of which nothing is in flight. Both references must outlive it.
  ClosedEnds(runtime::Runtime& runtime, const EndTable& ends, std::function<void(ChannelEnd&)> free)
      : runtime_(runtime), ends_(ends), free_(std::move(free)) {}
  ClosedEnds(const ClosedEnds&) = delete;
  ClosedEnds& operator=(const ClosedEnds&) = delete;

  void add(const ChannelEnd& end) { numbers_.push_back(end.number); }
  // Frees what can be freed, in a turn of its own: the caller may be a completion that uses its end. Call it when something
  // of a closed end is over.
  void look_later();

 private:
  struct Look : runtime::Work {
    explicit Look(ClosedEnds& owner_in) : runtime::Work(&Look::turn), owner(owner_in) {}
    static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action);
    ClosedEnds& owner;
    bool is_posted = false;
  };
  void look();

  runtime::Runtime& runtime_;
  const EndTable& ends_;
  std::function<void(ChannelEnd&)> free_;
  std::vector<std::uint32_t> numbers_;
  Look look_{*this};
};

}  // namespace weft::channel
