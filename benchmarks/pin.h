// Keeps a measuring program on one core, so that the kernel's choices are not part of the figure. Shared with the programs of
// other systems: it needs nothing of Weft.
#pragma once

#include <sched.h>

namespace weft::benchmarks {

// Keeps this process on the core with its PE's number, modulo the cores that it may use.
inline void pin(int pe) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  int index = pe % CPU_COUNT(&usable);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || index-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

}  // namespace weft::benchmarks
