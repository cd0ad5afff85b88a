"""Heat in a rod of several blocks per PE: while a block waits for its neighbours, another one computes.

weft run -n 2 examples/04_heat/heat.py
"""

import numpy as np

import weft

NUM_BLOCKS = 8
POINTS = 16  # of a block
NUM_STEPS = 4000


class Block(weft.Chare):
    """A part of the rod, with a ghost point at either end. The rod's ends are held at 100 and at 0."""

    def __init__(self):
        self.heat = np.zeros(POINTS + 2)
        self.sides = []  # a neighbour: its channel, the point that it gets, the ghost point that it sets
        if self.index > 0:
            left = weft.Channel(self, self.proxy[self.index - 1])
            self.sides.append((left, self.heat[1:2], self.heat[:1]))
        else:
            self.heat[0] = 100.0
        if self.index < NUM_BLOCKS - 1:
            right = weft.Channel(self, self.proxy[self.index + 1])
            self.sides.append((right, self.heat[-2:-1], self.heat[-1:]))

    async def run(self):
        """The mean after all steps."""
        heat = self.heat
        for _ in range(NUM_STEPS):
            for channel, point, _ in self.sides:
                channel.send(point)
            for channel, _, ghost in self.sides:
                await channel.recv(into=ghost)
            heat[1:-1] += 0.25 * (heat[:-2] - 2.0 * heat[1:-1] + heat[2:])
        return heat[1:-1].mean()


async def main():
    rod = weft.Array(Block, NUM_BLOCKS)
    print("the heat along the rod:", *(f"{mean:.2f}" for mean in await rod.run.call()))


weft.run(main)
