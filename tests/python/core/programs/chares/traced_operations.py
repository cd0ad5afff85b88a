"""Work of devices, a step of load balancing with a move, a reduction, a checkpoint: for `weft run --trace`.

Usage: traced_operations.py FOLDER
"""

import sys
import time

import weft

NUM_CELLS = 4
WORK_S = 0.01


def work(field, time_s):
    end = time.thread_time() + time_s
    while time.thread_time() < end:
        field[:] += 1


class Cell(weft.Chare):
    def __init__(self):
        self.field = weft.DeviceArray(8, float, "emulated")

    async def iterate(self, over):
        with self.device_work(kind="emulated"):
            weft.emulated.launch(work, self.field, WORK_S)
        await weft.yield_now()
        self.set_load_s(1.0 if self.index < NUM_CELLS // 2 else 0.1)
        self.over = over
        self.at_sync()

    def resume_from_sync(self):
        self.contribute(1, weft.Reducer.sum, self.over)
        del self.over


async def main():
    cells = weft.Array(Cell, NUM_CELLS)
    over = weft.Future()
    cells.iterate(over)
    assert await over == NUM_CELLS
    await weft.checkpoint(sys.argv[1], {"cells": cells})


weft.run(main)
