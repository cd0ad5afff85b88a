"""How long UCX waits while it installs its memory hooks, decided before UCX is loaded.

UCX patches mmap, munmap and six other functions when its library is loaded. It holds each of them and waits,
so that a thread that is inside the function's first instructions can leave them. UCX 1.21 and later wait
50 ms for each, 0.4 s in all, also in a process that has one thread only. The hooks, on which UCX's caches of
registered memory depend, stay as they are.
"""

from __future__ import annotations

import os

GRACE = "UCX_MEM_BISTRO_GRACE_DURATION"
# Without other threads nothing can be inside the functions.
NO_THREADS = "0"
# The time that every UCX up to 1.20 waits.
WITH_THREADS = "5ms"


def shorten_wait() -> None:
    """Sets the wait for this process and its children; a value that the user has set stays."""
    # NO_THREADS may come from `weft run`, which does not know what this process did before.
    if os.environ.get(GRACE, NO_THREADS) == NO_THREADS:
        os.environ[GRACE] = NO_THREADS if _num_threads() == 1 else WITH_THREADS


def _num_threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 2  # unknown
