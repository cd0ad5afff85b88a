"""`weft run --timeout`: this PE says at the limit where it is."""

from __future__ import annotations

import contextlib
import os
import time

from weft.launch.time_limit import FILE_NAME, VARIABLE


def watch() -> None:
    """At the limit a thread of faulthandler writes the stacks of this process where the launcher reads them.

    It runs no Python, so the PE may be anywhere. Does nothing in a process that inherited the variable only.
    """
    import faulthandler

    with contextlib.suppress(ValueError, OSError, RuntimeError):
        at, fd = os.environ.pop(VARIABLE).split(",")
        if os.readlink(f"/proc/self/fd/{int(fd)}").startswith(f"/memfd:{FILE_NAME}"):
            faulthandler.dump_traceback_later(max(0.001, float(at) - time.monotonic()), file=int(fd))
