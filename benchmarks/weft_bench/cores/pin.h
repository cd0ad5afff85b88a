/* Keeps a measuring program on one core, so that the kernel's choices are not part of the figure. In C and in C++. Shared with the
 * programs of other systems: it needs nothing of Weft. A program in C defines _GNU_SOURCE first. */
#pragma once

#include <sched.h>

#ifdef __cplusplus
namespace weft::benchmarks {
#endif

/* Keeps this process on the core with its PE's number, modulo the cores that it may use. */
static inline void pin(int pe) {
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

#ifdef __cplusplus
}
#endif
