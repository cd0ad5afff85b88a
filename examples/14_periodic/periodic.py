"""Workers of unequal speed, each on its own: load balancing moves them while they work, without sync points.

weft run -n 2 --lb-period 0.05 --lb-verbose examples/14_periodic/periodic.py
"""

import time

import weft

NUM_WORKERS = 16
NUM_ITEMS = 100
UNIT_S = 50e-6


class Worker(weft.Chare):
    """May move between any two of its calls; then it travels with its attributes."""

    balance_periodically = True

    def __init__(self):
        self.num_items = 0
        self.num_moves = 0

    def start(self, finished):
        self.finished = finished
        self.work()

    def work(self):
        compute(UNIT_S * (1 + 9 * self.index / (NUM_WORKERS - 1)))
        self.num_items += 1
        if self.num_items < NUM_ITEMS:
            self.proxy[self.index].work()
        else:
            self.contribute(self.num_items, weft.Reducer.sum, self.finished)

    def migrated(self):
        self.num_moves += 1

    def times_moved(self):
        return self.num_moves


def compute(time_s):
    end = time.perf_counter() + time_s
    while time.perf_counter() < end:
        pass


async def main():
    workers = weft.Array(Worker, NUM_WORKERS)
    finished = weft.Future()
    workers.start(finished)
    print(f"{NUM_WORKERS} workers have done {await finished} items")
    num_moved = sum(moves > 0 for moves in await workers.times_moved.call())
    print(f"workers that have moved: {num_moved}")


weft.run(main)
