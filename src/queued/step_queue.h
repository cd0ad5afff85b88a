// Steps of one stream that are queued together, in as few launches as the kind of device can.
//
// Threads: the PE's.
#pragma once

#include <memory>
#include <vector>

#include "weft/memory/buffer.h"

#include "memory/kinds/kind.h"
#include "queued/stream_watch.h"

namespace weft::queued {

class StepQueue {
 public:
  // `watch` notes what is queued. All live as long as this object.
  StepQueue(memory::KindBackend& kind, memory::Place device, memory::StreamHandle stream, StreamWatch& watch)
      : kind_(kind), device_(device), stream_(stream), watch_(watch) {}

  // `keeper` is what the step uses. Throws Error as flush() does.
  void add(const memory::DeviceStep& step, std::shared_ptr<void> keeper);
  // Queues what has been added. Throws Error if the kind refuses a step; some may be queued then.
  void flush();

 private:
  memory::KindBackend& kind_;
  memory::Place device_;
  memory::StreamHandle stream_;
  StreamWatch& watch_;
  std::vector<memory::DeviceStep> steps_;
  std::vector<std::shared_ptr<void>> keepers_;
};

}  // namespace weft::queued
