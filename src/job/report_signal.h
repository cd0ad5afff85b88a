// SIGUSR1 asks a job what its PEs wait for: `kill -USR1`, `weft status`.
//
// Threads: the PE's makes it and destroys it. The handler runs on any thread.
#pragma once

#include <csignal>

#include "weft/runtime/runtime.h"

namespace weft::job {

// While it lives, SIGUSR1 makes each PE write its stack to stderr, and PE 0 a report of all PEs. Under `weft run` all of it is also in files
// of its folder for shared memory, for the process that asks. Does nothing if the program has
// set a handler, or ignores the signal.
class ReportSignal {
 public:
  explicit ReportSignal(runtime::Runtime& runtime);
  ~ReportSignal();
  ReportSignal(const ReportSignal&) = delete;
  ReportSignal& operator=(const ReportSignal&) = delete;
  bool is_set() const { return is_set_; }
  // From now on a handler of the program's language, in front of this one, writes the stacks of the PE. Returns the file that it writes to;
  // -1: it is stderr. The object keeps the file open.
  static int expect_own_stacks();

 private:
  runtime::Runtime& runtime_;
  bool is_set_ = false;
};

}  // namespace weft::job
