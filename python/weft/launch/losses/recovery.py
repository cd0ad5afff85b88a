"""When a job begins again after losses (`weft run --on-loss restart`), and when it has done so too often.

No sockets and no processes here: `job` asks, and `service` tells the PEs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

VARIABLE = "WEFT_ON_LOSS"
INCARNATION_VARIABLE = "WEFT_INCARNATION"
# So often may a job begin again without a weft.protect in between: a program that crashes each time ends.
MOST_WITHOUT_PROGRESS = 5
# So long may a PE run an entry method when the job begins again.
LEAVE_S = 30.0
# So long an abort waits for the death that may be its reason: a connection closes before its process can be
# reaped. While a process ends, which takes long if it has memory of devices, it waits longer.
HOLD_S = 0.25
MOST_HOLD_S = 20.0
LOOK_S = 0.05


class Recovery:
    """The incarnations of one job. `shrinks`: after a loss it goes on with fewer PEs."""

    def __init__(self, *, shrinks: bool = False) -> None:
        self.shrinks = shrinks
        self.incarnation = 0
        self.newest_protected = 0
        self._without_progress = 0
        self._held_since: float | None = None
        self._hold_until: float | None = None
        self._leaving: set[int] = set()  # the PEs that have not left the incarnation before
        self._leave_until: float | None = None
        self._late_at: float | None = None
        self._is_joining = False

    @property
    def deadlines(self) -> list[float]:
        """When `job` has to look again."""
        return [at for at in (self._hold_until, self._leave_until, self._late_at) if at is not None]

    def protected(self, number: int) -> None:
        """All PEs have protected a state."""
        if number > self.newest_protected:
            self.newest_protected = number
            self._without_progress = 0

    def holds_aborts(self, has_deaths: bool, is_one_dying: Callable[[], bool]) -> bool:
        """Whether aborts that have come are to wait for deaths. To be asked again at the deadline."""
        now = time.monotonic()
        if not has_deaths and self._held_since is None:
            self._held_since = now
        if not has_deaths and self._held_since is not None:
            if now < self._held_since + HOLD_S:
                self._hold_until = self._held_since + HOLD_S
                return True
            if now < self._held_since + MOST_HOLD_S and is_one_dying():
                self._hold_until = now + LOOK_S
                return True
        self.end_hold()
        return False

    def end_hold(self) -> None:
        """No abort waits any more."""
        self._held_since = self._hold_until = None

    def obstacle(self, lost: Iterable[int]) -> str | None:
        """Counts a loss of PEs that were started in those incarnations. Why the job cannot begin again."""
        # A loss while the PEs still come back from the one before belongs to that one.
        if not self._is_joining or self.incarnation in lost:
            self._without_progress += 1
        if self._without_progress <= MOST_WITHOUT_PROGRESS:
            return None
        return f"the job has begun again {MOST_WITHOUT_PROGRESS} times without a weft.protect in between"

    def begin(self, survivors: Iterable[int]) -> int:
        """Returns the number of the next incarnation, for which the survivors leave this one."""
        self.incarnation += 1
        self._leaving = set(survivors)
        self._leave_until = time.monotonic() + LEAVE_S if self._leaving else None
        self._late_at = time.monotonic() + LEAVE_S
        self._is_joining = True
        return self.incarnation

    def left(self, pe: int) -> None:
        """A PE is ready for the incarnation, or begins its program again for it."""
        self._leaving.discard(pe)
        if not self._leaving:
            self._leave_until = None

    def all_stopped(self) -> None:
        """The PEs that begin in new programs are told to, and read their states."""
        self._late_at = time.monotonic() + LEAVE_S

    def all_joined(self) -> None:
        """All PEs are in the incarnation."""
        self._is_joining = False
        self._late_at = None

    def is_late(self) -> bool:
        """Whether to say which PEs are waited for. Once, for reading a state may take any time."""
        if self._late_at is None or time.monotonic() < self._late_at:
            return False
        self._late_at = None
        return True

    def busy(self) -> list[int]:
        """The PEs that have not left in time."""
        if self._leave_until is None or time.monotonic() < self._leave_until:
            return []
        return sorted(self._leaving)
