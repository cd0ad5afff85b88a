"""Blocks of unequal work, which load balancing moves at a sync point after every fifth iteration.

weft run -n 2 --lb-verbose examples/09_balance/balance.py
"""

import time

import weft

NUM_BLOCKS = 32
ITERATIONS_PER_STEP = 5
NUM_STEPS = 3
UNIT_S = 20e-6


class Block(weft.Chare):
    """A block that moves travels with its attributes."""

    def __init__(self):
        self.values = [float(self.index)] * 1000
        self.num_iterations = 0

    def start(self, finished):
        self.finished = finished
        self.iterate()

    def iterate(self):
        """One iteration. Blocks iterate on their own here; real ones would exchange halos."""
        compute(UNIT_S * (1 + 9 * self.index / (NUM_BLOCKS - 1)))
        self.num_iterations += 1
        if self.num_iterations % ITERATIONS_PER_STEP == 0:
            self.at_sync()
        else:
            self.proxy[self.index].iterate()

    def resume_from_sync(self):
        """All blocks have reached the sync point, and those that had to move have moved."""
        if self.num_iterations < NUM_STEPS * ITERATIONS_PER_STEP:
            self.proxy[self.index].iterate()
        else:
            self.contribute(1, weft.Reducer.sum, self.finished)

    def where_now(self):
        return weft.my_pe()

    def is_whole(self):
        expected = NUM_STEPS * ITERATIONS_PER_STEP
        return self.values == [float(self.index)] * 1000 and self.num_iterations == expected


def compute(time_s):
    end = time.perf_counter() + time_s
    while time.perf_counter() < end:
        pass


async def main():
    blocks = weft.Array(Block, NUM_BLOCKS)
    finished = weft.Future()
    blocks.start(finished)
    print(f"{await finished} blocks have finished")
    print(f"{sum(await blocks.is_whole.call())} of them are whole")
    pes = await blocks.where_now.call()
    is_used = set(pes) == set(range(weft.num_pes()))
    print(f"every PE has blocks: {'yes' if is_used else 'no'}")


weft.run(main)
