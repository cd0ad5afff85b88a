"""Chares that are saved to a folder and restored from it. Prints "all checked".

checkpointing.py save|restore|refused|balanced|unawaited FOLDER
checkpointing.py save_device|restore_device FOLDER KIND
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import weft

MODE, FOLDER = sys.argv[1:3]
NUM_CELLS = 7
LARGE = 100_000  # float64: travels out of band, and is a buffer of its own in the file


class Log(weft.Chare):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        self.lines.append(line)

    def read(self) -> list[str]:
        return self.lines


class Cell(weft.Chare):
    def __init__(self, log: Any) -> None:
        self.log = log
        self.neighbour: Any = None
        self.field = np.arange(LARGE, dtype=np.float64) + self.index
        self.view = self.field[10:20]
        self.small = np.array([self.index])
        self.seen = {"arrivals": 0}

    def know(self, neighbour: Any) -> None:
        self.neighbour = neighbour

    def go(self, pe: int) -> None:
        self.migrate(pe)

    def migrated(self) -> None:
        self.seen["arrivals"] += 1

    def where(self) -> int:
        return weft.my_pe()

    async def name_of_neighbour(self) -> int:
        return await self.neighbour.name.call()

    def name(self) -> int:
        return int(self.small[0])

    def say(self, line: str) -> None:
        self.log.write(line)

    async def sum(self, value: int) -> int:
        return await self.allreduce(value, weft.Reducer.sum)

    async def wait(self, until: weft.Future[None]) -> None:
        await until

    def take(self, thing: object) -> None:
        self.thing = thing

    def check(self) -> int:
        assert self.field.shape == (LARGE,)
        assert np.array_equal(self.field, np.arange(LARGE) + self.index)
        self.field[3] = -1  # it is this chare's own memory, and writable
        self.field[3] = 3 + self.index
        assert self.name() == self.index
        return self.seen["arrivals"]


class Computed(weft.Chare):
    """Its state exists only while it is packed."""

    def __init__(self) -> None:
        self.scale = 3.0

    def __getstate__(self) -> dict[str, Any]:
        return {"scale": self.scale, "field": np.full(LARGE, self.scale)}

    def check(self) -> bool:
        return bool((self.field == 3.0).all())  # type: ignore[attr-defined]


class Balanced(weft.Chare):
    def sync(self, over: weft.Future[int]) -> None:
        self.over = over
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.over)
        del self.over

    def set_load(self, load_s: float) -> None:
        self.set_load_s(load_s)

    def load(self) -> float:
        return self.load_s


async def balanced() -> None:
    """Saves in the first job and restores in the second. Both reach a sync point."""
    is_first = not weft.has_checkpoint(FOLDER)
    cells = weft.Array(Balanced, 5) if is_first else (await weft.restore(FOLDER))["cells"]
    if is_first:
        await cells[3].set_load.call(2.5)
    assert await cells[3].load.call() == 2.5
    over: weft.Future[int] = weft.Future()
    cells.sync(over)
    assert await over == 5
    if is_first:
        await weft.checkpoint(FOLDER, {"cells": cells})


async def unawaited() -> None:
    """An error of a checkpoint that nothing awaits ends the job."""
    cell = weft.Singleton(Cell, args=(None,))
    until: weft.Future[None] = weft.Future()
    cell.wait(until)
    weft.checkpoint(FOLDER, {"cell": cell})
    await weft.sleep(60)


async def save() -> None:
    weft.Array(Log, 4)  # so that the numbers of collections differ later
    log = weft.Singleton(Log, pe=weft.num_pes() - 1)
    cells = weft.Array(Cell, NUM_CELLS, args=(log,))
    computed = weft.Array(Computed, 2, map=lambda i: i % weft.num_pes())
    for i in range(NUM_CELLS):
        cells[i].know(cells[(i + 1) % NUM_CELLS])
    await cells.sum.call(1)
    await cells[1].go.call(weft.num_pes() - 1)
    cells[0].say("saved")
    assert not weft.has_checkpoint(FOLDER)
    values = {
        "cells": cells,
        "first": cells[0],
        "log": log,
        "computed": computed,
        "step": 7,
        "x": np.arange(5),
    }
    for step in (7, 8, 9):
        values["step"] = step
        await weft.checkpoint(FOLDER, values)
    cells.say("after")
    await weft.quiescence()
    assert len(await log.read.call()) == 1 + NUM_CELLS


async def restore() -> None:
    assert weft.has_checkpoint(FOLDER)
    saved = await weft.restore(FOLDER)
    assert saved["step"] == 9 and saved["x"].tolist() == [0, 1, 2, 3, 4]
    cells, log = saved["cells"], saved["log"]
    assert saved["first"] == cells[0] and len(cells) == NUM_CELLS
    assert all(await saved["computed"].check.call())
    for i in range(NUM_CELLS):
        assert 1 <= await cells[i].check.call() <= 2
        assert await cells[i].name_of_neighbour.call() == (i + 1) % NUM_CELLS
    cells.say("again")
    await weft.quiescence()
    assert await log.read.call() == ["saved"] + ["again"] * NUM_CELLS
    for round in range(1, 4):
        assert await cells.sum.call(round) == [NUM_CELLS * round] * NUM_CELLS
    for pe in (weft.num_pes() - 1, 0):
        await cells[5].go.call(pe)
        assert await cells[5].where.call() == pe
        assert (await cells.sum.call(1))[5] == NUM_CELLS
    await weft.checkpoint(FOLDER, saved)
    await cells.destroy()


class Holder(weft.Chare):
    """Has device memory in its state."""

    async def fill(self, kind: str) -> None:
        self.array = weft.DeviceArray((2, LARGE), np.float32, kind)
        self.small = weft.DeviceArray(3, np.int64, kind)
        await self.array.copy_from(np.arange(2 * LARGE, dtype=np.float32).reshape(2, LARGE) + self.index)
        await self.small.copy_from(np.array([7, 8, 9]) * self.index)

    async def check(self, kind: str) -> str:
        expected = np.arange(2 * LARGE, dtype=np.float32).reshape(2, LARGE) + self.index
        assert np.array_equal(await self.array.to_host(), expected)
        small = await self.small.to_host()
        assert small.tolist() == [7 * self.index, 8 * self.index, 9 * self.index]
        return kind


async def save_device() -> None:
    holders = weft.Array(Holder, 3)
    await holders.fill.call(sys.argv[3])
    await weft.checkpoint(FOLDER, {"holders": holders})
    await holders.check.call(sys.argv[3])


async def restore_device() -> None:
    holders = (await weft.restore(FOLDER))["holders"]
    await holders.check.call(sys.argv[3])
    await weft.checkpoint(FOLDER, {"holders": holders})
    await holders.destroy()


async def error_of(awaitable: Any) -> str:
    try:
        await awaitable
    except weft.Error as error:
        return str(error)
    raise AssertionError("no error")


async def refused() -> None:
    log = weft.Singleton(Log)
    cells = weft.Array(Cell, 2, args=(log,))
    assert "has no checkpoint" in await error_of(weft.restore(FOLDER))
    error = await error_of(weft.checkpoint(FOLDER, {"cells": cells}))
    assert "Cell[0] on PE 0 cannot be saved" in error and "proxy of the collection Log" in error, error
    values = {"cells": cells, "log": log}
    gate: weft.Future[None] = weft.Future()
    try:
        weft.checkpoint(FOLDER, {"gate": gate})
    except weft.Error as error:
        assert "holds a future" in str(error), error
    else:
        raise AssertionError("a future was saved")
    here = cells[0]
    waiting = here.wait.call(gate)
    assert "1 coroutine that waits" in await error_of(weft.checkpoint(FOLDER, values))
    gate.set()
    await waiting
    await here.take.call(gate)
    assert "holds a future" in await error_of(weft.checkpoint(FOLDER, values))
    memory = weft.pgas.make_segment(4, "int64")
    for thing in (memory.pointer(), [memory.pointer()]):
        await here.take.call(thing)
        assert "holds global memory (byte 0 of segment" in await error_of(weft.checkpoint(FOLDER, values))
        try:
            weft.checkpoint(FOLDER, {"thing": thing})
        except weft.Error as error:
            assert "a value of the checkpoint holds global memory" in str(error), error
        else:
            raise AssertionError("a global pointer was saved")
    await here.take.call(None)
    try:
        weft.checkpoint(FOLDER, {"cells": cells, "function": lambda: 0})
    except Exception as error:
        assert "a value of the checkpoint" in str(error), error
    else:
        raise AssertionError("a lambda was saved")
    assert not weft.has_checkpoint(FOLDER)
    await weft.checkpoint(FOLDER, values)
    assert weft.has_checkpoint(FOLDER)


async def main() -> None:
    modes = (save, restore, refused, balanced, unawaited, save_device, restore_device)
    await {mode.__name__: mode for mode in modes}[MODE]()
    print("all checked")


weft.run(main)
