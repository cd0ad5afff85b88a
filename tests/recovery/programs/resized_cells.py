"""A job that gets other numbers of PEs while its chares call one another.

resized_cells.py STEPS EVENTS prints the final values, how many messages each chare got, and the
number of PEs.
EVENTS is a comma-separated list of WHAT=NUMBER@STEP@INCARNATION:

    resize    main asks for so many PEs in that step
    kill      the PE kills itself in an entry method of that step
    drain     the PE gets SIGTERM in an entry method of that step
    protect   the PE kills itself while the state of a chare is packed in that step
    recover   the PE kills itself while the state of a chare of that step is unpacked
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import numpy as np

import weft

NUM_CELLS = 10
NUM_STEPS = int(sys.argv[1])
PROTECT_EVERY = 2


def parse(events: str) -> set[tuple[str, int, int, int]]:
    """What, number, step and incarnation of each event."""
    parsed = set()
    for event in filter(None, events.split(",")):
        what, rest = event.split("=")
        number, step, incarnation = map(int, rest.split("@"))
        parsed.add((what, number, step, incarnation))
    return parsed


EVENTS = parse(sys.argv[2])


def happen(what: str, step: int) -> None:
    """Signals this process if that is one of the events."""
    if (what, weft.my_pe(), step, weft.recoveries()) in EVENTS:
        os.kill(os.getpid(), signal.SIGTERM if what == "drain" else signal.SIGKILL)


def is_draining(step: int) -> bool:
    """Whether a PE has got SIGTERM in this incarnation, before that step."""
    drains = [event for event in EVENTS if event[0] == "drain"]
    return any(at < step and incarnation == weft.recoveries() for _, _, at, incarnation in drains)


class Cell(weft.Chare):
    """Values that depend on every message of the neighbours, each counted once."""

    def __init__(self) -> None:
        self.values = np.arange(1_000, dtype=np.float64) * (self.index + 1)
        self.step = 0
        self.taken = 0
        self.arrived: dict[int, int] = {}  # by the step in which they count

    def __getstate__(self) -> dict[str, Any]:
        happen("protect", self.step)
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        happen("recover", self.step)

    async def advance(self) -> None:
        happen("kill", self.step)
        happen("drain", self.step)
        self.taken += self.arrived.pop(self.step, 0)
        self.values = np.sin(self.values) + 0.01 * self.taken
        self.step += 1
        for distance in (1, 3):
            self.proxy[(self.index + distance) % NUM_CELLS].take(self.step)

    def take(self, step: int) -> None:
        self.arrived[step] = self.arrived.get(step, 0) + 1

    def result(self) -> tuple[str, int]:
        return float(self.values.sum()).hex(), self.taken + sum(self.arrived.values())


async def main() -> None:
    saved = await weft.recovered()
    cells, step = (weft.Array(Cell, NUM_CELLS), 0) if saved is None else (saved["cells"], saved["step"])
    while step < NUM_STEPS:
        await cells.advance.call()
        await weft.quiescence()
        step += 1
        for what, number, at, incarnation in EVENTS:
            if (what, at, incarnation) == ("resize", step, weft.recoveries()):
                await weft.resize(number)
        if step % PROTECT_EVERY == 0:
            await weft.protect({"cells": cells, "step": step})
            # The launcher hears of the signal later. The job does not end before: main begins again here.
            while is_draining(step):
                await weft.protect({"cells": cells, "step": step})
    print("results", await cells.result.call())
    print("pes", weft.num_pes(), "begun again", weft.recoveries())


weft.run(main)
