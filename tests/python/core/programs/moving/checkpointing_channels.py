"""A ring of chares with channels that is saved and restored, on any number of PEs. Prints "all checked".

checkpointing_channels.py FOLDER: saves in the first job, restores in later ones.
"""

import sys

import numpy as np

import weft

FOLDER = sys.argv[1]
NUM_CELLS = 4
LARGE = 50_000


class Cell(weft.Chare):
    def __init__(self):
        self.right = weft.Channel(self, self.proxy[(self.index + 1) % NUM_CELLS])
        self.left = weft.Channel(self, self.proxy[(self.index - 1) % NUM_CELLS])
        self.field = np.full(LARGE, float(self.index))
        self.steps = 0

    async def step(self):
        """Gets the field of its neighbour on the left, and exchanges objects with both."""
        came = np.empty(LARGE)
        sent = self.right.send(self.field)
        await self.left.recv(into=came)
        await sent
        self.left.send_object({"from": self.index, "steps": self.steps})
        told = await self.right.recv_object()
        assert told == {"from": (self.index + 1) % NUM_CELLS, "steps": self.steps}, told
        self.field = came
        self.steps += 1
        return float(came[0])

    def expect(self):
        self.waiting = self.left.recv(into=np.empty(1))

    async def end_expecting(self):
        await self.waiting
        self.waiting = None

    def tell(self):
        self.right.send(np.ones(1))

    def go(self, to_pe):
        self.migrate(to_pe)


async def main():
    if weft.has_checkpoint(FOLDER):
        saved = await weft.restore(FOLDER)
        cells, steps = saved["cells"], saved["steps"]
    else:
        cells, steps = weft.Array(Cell, NUM_CELLS), 0
        await cells[1].expect.call()
        try:
            await weft.checkpoint(FOLDER, {"cells": cells})
        except weft.Error as error:
            assert "1 sends or receives that are not over" in str(error), error
        else:
            raise AssertionError("it was saved")
        await cells[0].tell.call()
        await cells[1].end_expecting.call()
    for _ in range(3):
        values = await cells.step.call()
        steps += 1
        assert values == [(i - steps) % NUM_CELLS for i in range(NUM_CELLS)], values
        for i in range(NUM_CELLS):
            await cells[i].go.call((i + steps) % weft.num_pes())
    await weft.checkpoint(FOLDER, {"cells": cells, "steps": steps})
    await cells.step.call()
    print("all checked")


weft.run(main)
