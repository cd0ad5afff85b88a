// Measures how long devices work for an object: load balancing reads the times.
//
// The object says where its work on a stream begins and ends. Two events on the stream measure the time between, by the clock
// of the device: it runs from when the device is done with the work before the begin until it is done with the work before the
// end. Spans of one object on one stream that overlap are one span, from the first begin to the last end. Spans on several
// streams are measured each.
//
// If the PE has an observer, it learns of each span.
//
// No call waits for a device. The time of a span is added by settle(), if the device is done with the span by then. An event
// that fails is reported once by the PE; its span takes no time.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

namespace weft::runtime {

class Runtime;

class DeviceTime {
 public:
  explicit DeviceTime(Runtime& runtime) : runtime_(runtime) {}
  DeviceTime(const DeviceTime&) = delete;
  DeviceTime& operator=(const DeviceTime&) = delete;

  // The work that is queued on `stream` of `place` from now on is the object's. Null: the stream of programs that name none
  // (cuda: the legacy default stream).
  void begin(memory::Place place, memory::StreamHandle stream);
  // Ends a span that begin() began there. REQUIRES: the stream exists.
  void end(memory::Place place, memory::StreamHandle stream);

  // Adds the times of the spans that the device is done with.
  void settle();
  // The number of the last span up to number `most` that the device is not done with, by settle(); 0 if there is none. Spans of a
  // PE are numbered in the order of their ends, from 1 to DeviceMeter::num_spans.
  std::uint64_t last_pending(std::uint64_t most) const;
  // Calls `done` in a turn of its own when the device is done with the pending span of that number. REQUIRES: there is one.
  void when_done(std::uint64_t number, std::function<void()> done);

  double seconds() const { return seconds_; }
  void add(double seconds) { seconds_ += seconds; }
  void reset() { seconds_ = 0; }

 private:
  struct Span;

  static std::uint64_t number_of(const std::shared_ptr<Span>& span);
  std::size_t find_open(memory::Place place, memory::StreamHandle stream) const;
  // Returns false if the device is not done with it.
  bool settle(const Span& span);
  // Tells the PE's observer of the span when the device is done with it.
  void observe_end(const std::shared_ptr<Span>& span);
  void report(const base::Status& status);

  Runtime& runtime_;
  double seconds_ = 0;
  std::vector<std::shared_ptr<Span>> open_;
  std::vector<std::shared_ptr<Span>> pending_;  // in the order of their ends
  std::size_t settles_at_ = 0;                  // number of pending spans
};

}  // namespace weft::runtime
