// What a process keeps between two jobs, or two incarnations of one: its connection to the launcher, and what the launcher has said of the
// next incarnation. There is one of each in a process. The thread that runs the job uses them; LauncherWatch does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "machine/bootstrap/frame.h"

namespace weft::machine::bootstrap {

constexpr std::size_t kBeginAgainBytes = 12;  // of FrameType::kBeginAgain, before the reason

// What the launcher has told this process of the incarnations of its job.
struct NextIncarnation {
  std::optional<std::uint32_t> number;
  std::string socket_path;  // of the launcher
  int pe = 0;               // of this process
  int num_pes = 0;
  bool is_awaited = false;    // the process has not joined it yet
  bool goes_without = false;  // the process is not in it
};
extern NextIncarnation next_incarnation;
// A job of this launch has ended. One that follows cannot begin again.
extern bool has_finished_a_job;

// Keeps what FrameType::kBeginAgain says. Returns false if the frame is malformed.
bool note_next_incarnation(const Frame& frame, const std::string& socket_path);

// Keeps the connection of a job that this process has finished, for the next one of the same launch. Owns `fd` from here on.
void keep_connection(int fd, const std::string& socket_path);

// The connection that was kept, or that this process has inherited from the program it was before: of the same launch, owned by the
// caller; -1 if there is none. A forked process has none: it is no PE.
int take_kept_connection(const std::string& socket_path);

}  // namespace weft::machine::bootstrap
