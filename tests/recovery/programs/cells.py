"""A job that protects its chares and loses PEs on the way.

cells.py LOSSES prints the final values and the number of recoveries. LOSSES is a comma-separated list of
PLACE@STEP:PES@INCARNATION. In that incarnation and step, at that place, the first of the PEs (numbers with +
between them) kills the others and itself:

    work       in an entry method
    protect    while the state of a chare is packed
    recover    while the state of a chare is unpacked
    main       PE 0, in main, after the step
    begin      PE 0, in main, before it asks for the state; the step is 0
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import weft

NUM_CELLS = 12
NUM_STEPS = int(os.environ.get("CELLS_STEPS", "12"))
PROTECT_EVERY = 3


def parse(losses: str) -> dict[tuple[str, int, int, int], list[int]]:
    """By place, step, first PE and incarnation: the other PEs that are lost with it."""
    parsed = {}
    for loss in filter(None, losses.split(",")):
        place, step, rest = loss.replace(":", "@").split("@", 2)
        pes, incarnation = rest.split("@")
        first, *others = map(int, pes.split("+"))
        parsed[place, int(step), first, int(incarnation)] = others
    return parsed


LOSSES = parse(sys.argv[1])
FOLDER = sys.argv[2] if len(sys.argv) > 2 else None


def pid_of(pe: int) -> int:
    """The process of another PE, which has the same parent."""
    parent = os.getppid()
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if f"WEFT_PE={pe}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return int(pid)
    raise AssertionError(f"PE {pe} has no process")


def die_if(place: str, step: int) -> None:
    """Kills this process, and those that are lost with it, if that is one of the losses."""
    others = LOSSES.get((place, step, weft.my_pe(), weft.recoveries()))
    if others is not None:
        for pid in [*map(pid_of, others), os.getpid()]:
            os.kill(pid, signal.SIGKILL)


class Cell(weft.Chare):
    """Values that depend on the whole history, and on the neighbours."""

    def __init__(self) -> None:
        self.values = np.arange(20_000, dtype=np.float64) * (self.index + 1)
        self.step = 0
        self.received: dict[int, float] = {}  # by step

    def __getstate__(self) -> dict[str, Any]:
        die_if("protect", self.step)
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        die_if("recover", self.step)

    async def advance(self) -> None:
        die_if("work", self.step)
        self.values = np.sin(self.values) + 0.01 * self.received.pop(self.step, 0.0)
        self.step += 1
        await self.proxy[(self.index + 1) % NUM_CELLS].take.call(self.step, float(self.values[self.step]))

    def take(self, step: int, value: float) -> None:
        self.received[step] = value

    def move(self) -> None:
        self.migrate((weft.my_pe() + 1) % weft.num_pes())

    def total(self) -> float:
        return float(self.values.sum())


async def main() -> None:
    if (notes := os.environ.get("CELLS_NOTES")) is not None:
        Path(notes).write_text(os.environ["UCX_POSIX_DIR"])
    die_if("begin", 0)
    saved = await weft.recovered(FOLDER)
    if saved is None:
        cells, step = weft.Array(Cell, NUM_CELLS), 0
    else:
        cells, step = saved["cells"], saved["step"]
        assert weft.recoveries() > 0
    while step < NUM_STEPS:
        await cells.advance.call()
        step += 1
        die_if("main", step)
        if step == 4:
            cells.move()  # elements that are not at home are recovered, too
            await weft.quiescence()
        if step % PROTECT_EVERY == 0:
            await weft.protect({"cells": cells, "step": step})
            if FOLDER is not None:
                await weft.checkpoint(FOLDER, {"cells": cells, "step": step})
    print("values", [total.hex() for total in await cells.total.call()])
    print("recoveries", weft.recoveries())


weft.run(main)
