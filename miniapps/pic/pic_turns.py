"""Which block of a PE computes next: the one that is furthest behind. Nothing here needs Weft.

Blocks that could compute ask for a turn. Without turns they compute in the order in which their last messages
arrive; then some blocks run several steps ahead, and the other PEs wait for those that are behind.
"""

from __future__ import annotations

import heapq


class Turns:
    """Of one PE. At most one block has the turn."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """No block has asked yet."""
        self._waiting: list[tuple[int, int]] = []
        self._is_taken = False

    def ask(self, step: int, block: int) -> int | None:
        """A block could compute that step. Returns the block that has to get the turn now, if any."""
        heapq.heappush(self._waiting, (step, block))
        return None if self._is_taken else self.end()

    def end(self) -> int | None:
        """The turn is over. Returns the block that has to get the next one, if any."""
        self._is_taken = bool(self._waiting)
        return heapq.heappop(self._waiting)[1] if self._is_taken else None


#: A process is a PE.
turns = Turns()
