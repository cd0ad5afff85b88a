// SIGTERM asks for a job without this PE: `weft run --drain-on SIGTERM` (docs/recovery.md).
//
// Threads: the PE's makes it and destroys it. The handler runs on any thread, and a thread of its own passes the signal on.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <thread>

#include "weft/runtime/runtime.h"

namespace weft::machine {
class Bootstrap;
}

namespace weft::job {

class DrainSignal {
 public:
  // Empty unless WEFT_DRAIN_ON is SIGTERM, or if the program handles the signal itself, which is said on stderr, or if the system has no
  // descriptor or thread left.
  static std::unique_ptr<DrainSignal> from_environment(runtime::Runtime& runtime,
                                                       machine::Bootstrap& bootstrap);
  ~DrainSignal();
  // When no further incarnation of the job follows: SIGTERM ends the process again.
  static void give_back();
  // For a process that begins its program anew (exec): SIGTERM waits until the handler of the program that follows is there. One that has
  // come comes again. Returns the variable of the environment that tells that program, and adds the signal to those that are
  // `blocked` there.
  static std::string hold(sigset_t& blocked);
  // Whether the program that this process ran before has held SIGTERM.
  static bool is_held();
  DrainSignal(const DrainSignal&) = delete;
  DrainSignal& operator=(const DrainSignal&) = delete;

 private:
  DrainSignal() = default;
  bool begin(runtime::Runtime& runtime, machine::Bootstrap& bootstrap);

  int fd_ = -1;
  std::thread thread_;
};

}  // namespace weft::job
