"""A stream of a device, and graphs that are captured from it, for measuring programs of Weft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft

#: A stream holds about a thousand launches before a further one waits.
MOST_LAUNCHES = 200


class Stream:
    """A stream of CuPy, or of an emulated device: `own` is what Weft takes."""

    def __init__(self, memory: str) -> None:
        self._is_cuda = memory == "cuda"
        if self._is_cuda:
            import cupy

            self.own: Any = cupy.cuda.Stream(non_blocking=True)
        else:
            self.own = weft.Stream(memory)

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        """What launches a graph of what `queue` queues."""
        if self._is_cuda:
            self.own.begin_capture()
            queue()
            graph = self.own.end_capture()
        else:
            with weft.emulated.capture(self.own) as graph:
                queue()
        return lambda: graph.launch(self.own)
