// Threads of the program, which may call Weft at any time: a program with such a thread does not hang.
//
// Threads: those of the functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/runtime/program_activity.h"
#include "weft/runtime/runtime.h"

namespace weft::runtime {

// The threads that begin while it lives are Weft's own, or UCX's.
class OwnThreadsBegin {
 public:
  OwnThreadsBegin();
  ~OwnThreadsBegin();
  OwnThreadsBegin(const OwnThreadsBegin&) = delete;
  OwnThreadsBegin& operator=(const OwnThreadsBegin&) = delete;

 private:
  const std::vector<pid_t> before_;
};

// Whether a thread of this process may go on by itself, besides the caller, Weft's own threads and those of a device's driver: it runs,
// or waits for something else than another thread. A thread that waits for another one without a limit of time waits in the futex
// call, as the pools of OpenMP do between two regions.
bool program_threads_may_act();

// While it lives, the program of the runtime may go on if a thread of its process may.
class ThreadActivity final : private ProgramActivity {
 public:
  explicit ThreadActivity(Runtime& runtime) : runtime_(runtime) { runtime_.set_program_activity(this); }
  ~ThreadActivity() override { runtime_.set_program_activity(nullptr); }
  ThreadActivity(const ThreadActivity&) = delete;
  ThreadActivity& operator=(const ThreadActivity&) = delete;

 private:
  std::optional<std::uint64_t> poll() override {
    return program_threads_may_act() ? std::nullopt : std::optional<std::uint64_t>(0);
  }

  Runtime& runtime_;
};

}  // namespace weft::runtime
