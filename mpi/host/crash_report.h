// Says which rank has used up its stack, or has accessed an address that it must not, before SIGSEGV or SIGBUS ends the process.
#pragma once

#include "loading/rank_slot.h"

namespace weft::mpi_host {

// From now on, for all ranks of this process. `slots` stays valid until the process ends. A program may put its own handlers in place.
// Threads: only the caller's has a stack of its own for the report, so that it can be made when a rank's stack is full.
void report_crashes(const RankSlots& slots, int pe);

}  // namespace weft::mpi_host
