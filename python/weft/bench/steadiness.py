"""Whether the machine is the same during all runs: how far apart, in time, its two cores are.

A virtual machine's cores may be near one another at one time and far at another, which changes every small
message by a factor of four. Runs are comparable only at one distance; `Steadiness` makes them again until
they are.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TypeVar

from weft.bench.errors import BenchError
from weft.bench.process import capture
from weft.bench.programs import Programs

_PROGRAM = "core_distance"
#: Distances within this factor are the same; near and far differ by more than twice as much.
_SAME = 1.6
_ATTEMPTS = 4
_PAUSE_S = 0.5

Result = TypeVar("Result")


class Steadiness:
    """Runs things at the distance that the cores had first.

    Where the distance cannot be told (no program, one core) everything is taken as steady. `unsteady` counts
    the runs that were kept although the machine did not come back to that distance.
    """

    def __init__(self, distance: Callable[[], float | None]) -> None:
        self._distance = distance
        self.expected_ns = distance()
        self.unsteady = 0

    def run(self, function: Callable[[], Result]) -> Result:
        """What `function` returns, called again while the cores are at another distance before or after."""
        for _ in range(_ATTEMPTS):
            if self._is_expected():
                result = function()
                if self._is_expected():
                    return result
            time.sleep(_PAUSE_S)
        self.unsteady += 1
        return function()

    def _is_expected(self) -> bool:
        if self.expected_ns is None:
            return True
        now = self._distance()
        return now is None or 1 / _SAME < now / self.expected_ns < _SAME


def core_distance_ns(programs: Programs) -> float | None:
    """Nanoseconds that a cache line takes between the cores of PEs 0 and 1; None where it cannot be told."""
    program = programs.find(_PROGRAM)
    if program is None or len(os.sched_getaffinity(0)) < 2:
        return None
    try:
        return float(json.loads(capture([str(program)], _PROGRAM))["value"])
    except (BenchError, ValueError, KeyError):
        return None
