// A process that begins its job again in a new program (exec), which finds what the one before has protected.
//
// Threads: the PE's. Other threads end with the program.
#pragma once

#include <signal.h>

#include "weft/base/status.h"

#include "checkpoint/protected_state.h"

namespace weft::job {

// Takes what the program has handed over that this process ran before. Does nothing if there was none.
base::Status take_handed_over(checkpoint_files::ProtectedState& state);

// Replaces this process by the program with which it began, in that folder (a descriptor, or -1: the present one), with those blocked
// signals. `state`: of write_state_file(). REQUIRES: as machine::next_program(). Returns what is wrong.
base::Status start_program_anew(int state, int folder, const sigset_t& blocked);

}  // namespace weft::job
