"""At which distance of the machine's cores, in time, a run was made.

A virtual machine's cores may be near one another at one time and far at another, which changes every small
message by a factor of four. Only runs at one distance are comparable: `Steadiness` says of each run at which
of the distances seen so far it was made, and makes those again during which the cores moved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TypeVar

from weft_bench.errors import BenchError
from weft_bench.process import capture
from weft_bench.programs import Programs

_PROGRAM = "core_distance"
#: Distances within this factor are the same; near and far differ by more than twice as much.
_SAME = 1.6
_ATTEMPTS = 4

Result = TypeVar("Result")


class Steadiness:
    """Runs things while the cores stay where they are.

    `distances_ns` are those seen so far, by number. Where the distance cannot be told (no program, one core)
    everything was made at distance 0 of an empty list.
    """

    def __init__(self, distance: Callable[[], float | None]) -> None:
        self._distance = distance
        self.distances_ns: list[float] = []

    def run(self, function: Callable[[], Result]) -> tuple[Result, int | None]:
        """What `function` returns and the number of the distance; None if the cores moved during each try."""
        for _ in range(_ATTEMPTS):
            before = self._number_now()
            result = function()
            if before == self._number_now():
                return result, before
        return result, None

    def _number_now(self) -> int:
        now = self._distance()
        if now is None:
            return 0
        for number, known in enumerate(self.distances_ns):
            if 1 / _SAME < now / known < _SAME:
                return number
        self.distances_ns.append(now)
        return len(self.distances_ns) - 1


def core_distance_ns(programs: Programs) -> float | None:
    """Nanoseconds that a cache line takes between the cores of PEs 0 and 1; None where it cannot be told."""
    program = programs.find(_PROGRAM)
    if program is None or len(os.sched_getaffinity(0)) < 2:
        return None
    try:
        return float(json.loads(capture([str(program)], _PROGRAM))["value"])
    except (BenchError, ValueError, KeyError):
        return None
