"""A stencil without a barrier: each cell is at an iteration of its own, and a ghost that comes early waits.

weft run -n 2 examples/11_conditions/conditions.py
"""

import weft

NUM_CELLS = 8
NUM_ITERATIONS = 100


class Cell(weft.Chare):
    """Has a number, which becomes the sum of its neighbours in each iteration."""

    def __init__(self):
        self.iteration = 0
        self.number = self.index
        self.ghosts = []
        self.send_ghosts()

    def send_ghosts(self):
        for neighbour in (self.index - 1) % NUM_CELLS, (self.index + 1) % NUM_CELLS:
            self.proxy[neighbour].ghost(self.iteration, self.number)

    @weft.when(lambda self, iteration: iteration == self.iteration)
    def ghost(self, iteration, number):  # a neighbour may be one iteration ahead; its ghost waits
        self.ghosts.append(number)
        if len(self.ghosts) < 2:
            return
        self.number = sum(self.ghosts) % 1000
        self.ghosts.clear()
        self.iteration += 1
        if self.iteration < NUM_ITERATIONS:
            self.send_ghosts()

    def result(self):
        return self.number


async def main():
    cells = await weft.Array(Cell, NUM_CELLS)
    await weft.quiescence()
    print(f"after {NUM_ITERATIONS} iterations:", *await cells.result.call())


weft.run(main)
