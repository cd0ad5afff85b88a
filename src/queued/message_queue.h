// Messages of one stream that are queued together, in as few launches as their number and sizes allow. It is as if all sends came
// first, and then all receives. Ends of many parts wait in blocks of one warp, in a launch of their own.
//
// A launch starts its blocks in the order of the ends. A block that sends waits for places, which earlier launches of the peer free. A
// block that receives waits for blocks that send.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/memory/buffer.h"

#include "memory/kinds/kind.h"
#include "queued/stream_watch.h"

namespace weft::queued {

// Larger messages go by the copy engine, which leaves the multiprocessors to the program. Between two H200, in a graph: 4 MiB 15.4 us by
// a kernel and 26.3 us by the engine, 64 MiB 185 and 187 us.
inline constexpr std::size_t kMostKernelBytes = std::size_t{8} << 20;
// Parts are blocks that wait for their place, or for data. If ends that are queued together have more, blocks of one warp wait first, in a
// launch of their own: many streams whose blocks wait would else fill the device, and what they wait for could not start.
inline constexpr std::uint32_t kMostWaitingParts = 16;

class MessageQueue {
 public:
  MessageQueue(memory::KindBackend& kind, memory::Place device, memory::StreamHandle stream)
      : kind_(kind), device_(device), stream_(stream) {}

  // `watch` lives as long as this object, and notes what is queued, with `keeper`. REQUIRES: if flush() is to queue more than one send,
  // or more than one receive, with one count, these have free places, or get them by what peers have queued before.
  void add(const memory::MessageEnd& end, StreamWatch& watch, std::shared_ptr<void> keeper);
  // Queues what has been added. Throws Error. A part may be queued then, see has_launched().
  void flush();
  bool has_launched() const { return has_launched_; }

 private:
  struct Noted {
    StreamWatch* watch;
    std::shared_ptr<void> keeper;
  };
  void launch_all();
  // Puts the ends into launches, the last of which is left. `side`: how they wait before.
  void add_to_launches(const std::vector<memory::MessageEnd>& ends, bool wait_before,
                       memory::MessageSide side);
  void await(const memory::MessageEnd& end, memory::MessageSide side);
  memory::MessageEnd copy(const memory::MessageEnd& end);
  void put(const memory::MessageEnd& end);
  void launch();

  memory::KindBackend& kind_;
  memory::Place device_;
  memory::StreamHandle stream_;
  std::vector<memory::MessageEnd> sends_;
  std::vector<memory::MessageEnd> receives_;
  std::vector<Noted> noted_;
  bool has_launched_ = false;
  std::size_t num_put_ = 0;
  std::array<memory::MessageEnd, memory::kMaxMessageEnds> put_;  // the next launch
};

}  // namespace weft::queued
