"""A program that goes on where an earlier job has stopped, or was killed, also on another number of PEs.

weft run -n 2 examples/10_checkpoint/checkpoint.py results 10
weft run -n 3 examples/10_checkpoint/checkpoint.py results 20
"""

import sys

import weft

NUM_CELLS = 6
STEPS_OF_CHECKPOINT = 5

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "results"
LAST_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else 10


class Cell(weft.Chare):
    """Its attributes are saved, as they travel when it moves; __init__ does not run when it is restored."""

    def __init__(self):
        self._heat = 0.0
        self._left = None

    def know(self, left):
        self._left = left

    def warm(self, heat):
        self._heat += heat

    def advance(self):
        flow = (self._heat + 1) / 4
        self._heat -= flow
        self._left.warm(flow + self.index)

    def heat(self):
        return self._heat


async def main():
    if weft.has_checkpoint(FOLDER):
        saved = await weft.restore(FOLDER)
        cells, step = saved["cells"], saved["step"]
        print(f"goes on after step {step}")
    else:
        cells = weft.Array(Cell, NUM_CELLS)
        step = 0
        for i in range(NUM_CELLS):
            await cells[i].know.call(cells[(i - 1) % NUM_CELLS])
    while step < LAST_STEP:
        await cells.advance.call()
        await weft.quiescence()
        step += 1
        if step % STEPS_OF_CHECKPOINT == 0:
            await weft.checkpoint(FOLDER, {"cells": cells, "step": step})
    print(f"the heat after {step} steps is {sum(await cells.heat.call()):g}")


weft.run(main)
