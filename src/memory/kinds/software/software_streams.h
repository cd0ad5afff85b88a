// Streams and events for kinds whose copies the CPU makes. They follow the rules of a device's streams, but
// they advance only when polled, so every run does the same in the same order.
//
// A poll is a query() of an event that is not done. In a poll every stream, oldest first, does at most one
// piece of work and the event and wait operations after it. If work fails, the stream skips its further work
// up to the next event, which reports the failure. A stream that waits for a failed event gets the same
// failure. A timed event reports the failure too, and leaves it to the next event that is not timed: programs do not see timed
// events.
//
// A capture takes up what is queued on a stream instead of doing it, as a capture of a CUDA graph does. launch() queues all of
// it, as often as wanted. Events are not captured.
//
// A stream's clock is the processor time that its work has taken since the first timed event on it.
//
// Threads: one. Invariants: work never runs inside enqueue(); a stream's operations are done in order.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "memory/kinds/kind.h"

namespace weft::memory {

class SoftwareStreams {
 public:
  // Called at a poll. ok: done; pending: call again at the next poll; else its failure.
  using Work = std::function<base::Status()>;

  using Graph = std::vector<Work>;

  explicit SoftwareStreams(Kind kind, int num_devices);

  base::Result<StreamHandle> create(int device);
  base::Status destroy(StreamHandle stream);

  // A null stream is the device's own.
  base::Status enqueue(StreamHandle stream, int device, Work work);
  base::Status begin_capture(StreamHandle stream, int device);
  base::Result<Graph> end_capture(StreamHandle stream, int device);
  base::Status launch(const Graph& graph, StreamHandle stream, int device);
  bool is_capturing(StreamHandle stream, int device);
  base::Result<EventHandle> record(StreamHandle stream, int device) { return record(stream, device, false); }
  base::Result<EventHandle> record_timed(StreamHandle stream, int device) {
    return record(stream, device, true);
  }
  // No poll. See KindBackend::elapsed().
  static base::Status elapsed(EventHandle begin, EventHandle end, double& seconds);
  base::Status wait(StreamHandle stream, int device, EventHandle event);
  base::Status query(EventHandle event);
  // No poll.
  bool is_idle(StreamHandle stream, int device);
  void release(EventHandle event);
  // Of all polls so far: pieces of work that were pending, and operations that were done.
  struct Counts {
    std::uint64_t pending = 0;
    std::uint64_t done = 0;
  };
  Counts counts() const { return counts_; }

 private:
  struct Event {
    bool is_timed = false;
    bool done = false;
    base::Status failure;
    std::chrono::nanoseconds at{};  // by the stream's clock
  };
  // One of the three.
  struct StreamOperation {
    Work work;
    std::shared_ptr<Event> signals;
    std::shared_ptr<Event> waits_for;
  };
  struct Stream {
    int device = 0;
    bool destroyed = false;
    std::optional<Graph> capture;
    std::deque<StreamOperation> queue;
    base::Status failure;
    bool is_timed = false;
    std::chrono::nanoseconds clock{};
  };

  base::Result<Stream*> find(StreamHandle stream, int device);
  // As find(), for what a capture cannot contain.
  base::Result<Stream*> find_uncaptured(StreamHandle stream, int device);
  base::Result<EventHandle> record(StreamHandle stream, int device, bool is_timed);
  void poll();
  void advance(Stream& stream);
  static base::Status run(Stream& stream, Work& work);

  Kind kind_;
  int num_devices_;
  // By handle. A handle is never reused, so a destroyed stream is recognised. The order is that of creation.
  std::map<std::uintptr_t, Stream> streams_;
  std::uintptr_t next_handle_;
  Counts counts_;
};

}  // namespace weft::memory
