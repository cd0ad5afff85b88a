// What a process that `weft run` started knows of its launch and of its place in it, from the environment and from the launcher.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

struct LocalSettings {
  std::string socket_path;
  int pe = 0;
  int num_pes = 0;
  pid_t launcher_pid = 0;
  // This process has started the launcher, and not the other way round: PE 0 of weft.run(main, pes=...).
  bool is_attached = false;
  // The launcher begins the job again if it loses a PE (`weft run --on-loss restart` or `shrink`).
  bool is_restarted = false;
  // The launcher keeps the job if it loses a PE (`weft run --on-loss raise`).
  bool keeps_job = false;
  // The program can begin again, too.
  bool can_begin_again = false;
  std::uint32_t incarnation = 0;
  // What all PEs have in common, and no other job. Only in a job of several hosts (`weft run --hosts`).
  std::string job_name;

  // From WEFT_BOOTSTRAP, WEFT_PE, WEFT_NUM_PES, WEFT_LAUNCHER_PID, WEFT_ATTACHED, WEFT_ON_LOSS, WEFT_INCARNATION, WEFT_JOB_NAME; says which one is
  // wrong. The incarnation, the PE and the number of PEs are those of which the launcher has told this process last.
  static base::Result<LocalSettings> from_environment();
};

}  // namespace weft::machine::bootstrap
