// What has been queued on streams and is not over. Quiescence and the end of the job wait for it, a program can await it, and its
// failure reaches the program.
//
// One event is under way for a stream, however much is queued: note() costs a look at a short list. While a graph is captured,
// nothing is queued, and nothing is watched: the program awaits the streams on which it launches the graph.
//
// Threads: the PE's. The streams live until their work is over. The watch may go before.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/future.h"
#include "weft/runtime/runtime.h"

namespace weft::queued {

class StreamWatch {
 public:
  // `what` is for the error of a failure that no caller awaits: "a queued channel".
  StreamWatch(runtime::Runtime& runtime, const char* what);
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  // Work has been queued on `stream` (null: the kind's own) of that device. `keeper`, what the work uses, stays until it is over.
  void note(memory::Place device, memory::StreamHandle stream, std::shared_ptr<void> keeper);
  // Ready when what has been noted is over, with its first failure. A failure that comes while no caller awaits ends the job.
  runtime::Future<> over();
  bool is_idle() const;

 private:
  struct Watched;
  struct State;
  static runtime::Task<> watch(std::shared_ptr<State> state, std::size_t number);

  std::shared_ptr<State> state_;
};

}  // namespace weft::queued
