// The memory that post entry methods have chosen, from their choice until the entry method has run. If a call
// chooses memory in which another call lands, it waits for that call, and its buffers stay at their sender.
//
// A call gets all its memory at once, or waits without any. Calls that choose the same memory get it in order
// of arrival. A call that has its memory waits for its own buffers only, so there is no deadlock. Threads:
// one PE's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"

namespace weft::runtime {
class Runtime;
}

namespace weft::chare {

class Placements {
 public:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  };
  using Ranges = std::vector<Range>;

  explicit Placements(runtime::Runtime& runtime) : runtime_(runtime) {}

  // The parts of the memory chosen in `receive_buffers` that will be written.
  static Ranges ranges_of(std::span<const runtime::ReceiveBuffer> receive_buffers);
  static bool overlap_one_another(const Ranges& ranges);

  // If the memory is free, the call occupies it. Returns whether it does. If not, the caller defers the
  // message and passes it to wait().
  bool occupy(const Ranges& ranges);
  // Lands the buffers in `receive_buffers` when their memory is free.
  void wait(runtime::MessagePtr message, const Ranges& ranges,
            std::span<runtime::ReceiveBuffer> receive_buffers);
  // The call no longer needs the memory. Places the calls that waited for it.
  void release(const Ranges& ranges);
  // Drops the calls that wait.
  void close() { waiting_.clear(); }

 private:
  struct Waiting {
    runtime::MessagePtr message;
    Ranges ranges;
    std::vector<runtime::ReceiveBuffer> receive_buffers;
  };

  bool is_occupied(const Range& range) const;
  bool is_free(const Ranges& ranges) const;
  void take(const Ranges& ranges);

  runtime::Runtime& runtime_;
  std::map<std::uintptr_t, std::uintptr_t> occupied_;  // ends by beginnings; no two overlap
  std::deque<Waiting> waiting_;
};

}  // namespace weft::chare
