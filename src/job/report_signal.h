// SIGUSR1 asks a job what its PEs wait for: `kill -USR1`, `weft status`.
//
// Threads: the PE's makes it and destroys it. The handler runs on any thread.
#pragma once

#include <csignal>

#include "weft/runtime/runtime.h"

namespace weft::job {

// While it lives, SIGUSR1 makes PE 0 write a report of all PEs to stderr; the other PEs ignore the signal. Does nothing if the program has
// set a handler, or ignores the signal.
class ReportSignal {
 public:
  explicit ReportSignal(runtime::Runtime& runtime);
  ~ReportSignal();
  ReportSignal(const ReportSignal&) = delete;
  ReportSignal& operator=(const ReportSignal&) = delete;
  bool is_set() const { return is_set_; }

 private:
  runtime::Runtime& runtime_;
  bool is_set_ = false;
};

}  // namespace weft::job
