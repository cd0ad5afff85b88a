// Iterations of a block that are queued on its stream, and done by it. weft_bench/queued_work.py is the same in Python.
//
// Threads: the PE's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "weft/weft.h"

#include "device_streams/graph.h"

namespace miniapps {

class QueuedIterations {
 public:
  // Landings of a message, and buffers of a halo, which iterations use in turn. A graph has as many iterations.
  static constexpr int kNumSlots = 2;
  // A stream of CUDA has room for about 1000 pieces of work. Behind that the CPU would wait for the device in a launch,
  // and the other blocks of its PE could not queue the sends for which the device waits.
  static constexpr int kMostPieces = 920;

  // `queue` queues one iteration with the buffers of a slot, which is `most_pieces` pieces of work at most. `count` is called with the
  // number of iterations that have been queued.
  QueuedIterations(
      weft::Stream& stream, int most_pieces, std::function<void(int slot)> queue,
      std::function<void(int number)> count = [](int) {})
      : stream_(stream),
        // Two batches are in flight, because the device must not run dry while the CPU queues one.
        batch_(kMostPieces / 2 / most_pieces),
        queue_(std::move(queue)),
        count_(std::move(count)) {}

  // From now on pairs of iterations are launches of the graph that `capture` makes of what its argument queues. REQUIRES: slot 0 is next.
  template <class Capture>
  void capture(const Capture& capture) {
    graph_ = capture([this] {
      for (int slot = 0; slot < kNumSlots; ++slot) queue_(slot);
    });
  }

  // Queues them. The last ones may still be under way then: await the stream.
  weft::Task<> run(int iterations) {
    std::optional<weft::Operation> batch_before;
    for (int queued = 0; iterations > 0;) {
      const int number = queue_next(iterations);
      iterations -= number;
      queued += number;
      if (queued < batch_) continue;
      queued = 0;
      weft::Operation batch = stream_.done();
      if (batch_before) co_await *batch_before;
      batch_before = std::move(batch);
    }
    if (batch_before) co_await *batch_before;
  }

  // Of the next iteration.
  int slot() const { return slot_; }

 private:
  // Queues the next iteration, or two of them if a graph can have them. Returns how many. A graph begins with slot 0: its messages
  // have the landings that it names.
  int queue_next(int most) {
    int number = 1;
    if (graph_ != nullptr && slot_ == 0 && most >= kNumSlots) {
      number = kNumSlots;
      graph_->launch();
    } else {
      queue_(slot_);
    }
    slot_ = (slot_ + number) % kNumSlots;
    count_(number);
    return number;
  }

  weft::Stream& stream_;
  int batch_;
  std::function<void(int)> queue_;
  std::function<void(int)> count_;
  std::unique_ptr<Graph> graph_;
  int slot_ = 0;
};

}  // namespace miniapps
