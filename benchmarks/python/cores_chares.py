"""The operations of `weft bench cores` in Python: a group with a chare on each PE, as in cores_chares.cpp.

    cores_chares.py BUDGET_S OPERATION:SIZE...

Messages are calls with an array of bytes. Reductions are of arrays of doubles, and of a float if SIZE is 8.
weft_bench/cores/points.h says what a round is, and how the rounds of a run are chosen.
"""

import json
import sys
import time

import numpy as np
from measuring import WINDOW, pin

import weft

FLOOD = 1000
OPERATIONS = (
    "windows",
    "all_to_one",
    "solver_step",
    "barrier",
    "broadcast",
    "reduce",
    "all_reduce",
    "all_gather",
    "all_to_all",
)


class Member(weft.Chare):
    def __init__(self):
        pin(weft.my_pe())
        self.pes = weft.num_pes()
        # By lane: messages that have arrived, those that are needed to go on, and what waits for them.
        self.arrived, self.needed, self.waiting = [0, 0], [0, 0], [None, None]

    def take(self, lane, data):
        self.arrived[lane] += 1
        if self.arrived[lane] == self.needed[lane]:
            self.waiting[lane].set(None)

    async def arrivals(self, count, lane=0):
        self.needed[lane] += count
        if self.arrived[lane] < self.needed[lane]:
            self.waiting[lane] = weft.Future()
            await self.waiting[lane]

    async def time_run(self, operation, size_bytes, rounds):
        """The seconds of a run on this PE."""
        self.data = np.ones(size_bytes, np.uint8)
        self.value = 1.0 if size_bytes == 8 else np.ones(size_bytes // 8)
        self.batch = max(1, min(64, (4 << 20) // (size_bytes + 1)))
        await self.allreduce()
        start = time.perf_counter()
        await getattr(self, f"_{operation}")(rounds)
        return time.perf_counter() - start

    async def _windows(self, rounds):
        half = self.pes // 2
        if self.index < half:
            partner = self.proxy[self.index + half]
            for _ in range(rounds):
                for _ in range(WINDOW):
                    partner.take(0, self.data)
                await self.arrivals(1)
        elif self.index < 2 * half:
            partner = self.proxy[self.index - half]
            for _ in range(rounds):
                await self.arrivals(WINDOW)
                partner.take(0, None)

    async def _all_to_one(self, rounds):
        first = self.proxy[0]
        for _ in range(rounds):
            if self.index == 0:
                await self.arrivals(FLOOD * (self.pes - 1))
            else:
                for _ in range(FLOOD):
                    first.take(0, self.data)
            await self.allreduce()

    async def _solver_step(self, rounds):
        before, after = self.proxy[(self.index - 1) % self.pes], self.proxy[(self.index + 1) % self.pes]
        for _ in range(rounds):
            after.take(0, self.data)
            before.take(0, self.data)
            await self.arrivals(2)
            await self.allreduce(1.0, weft.Reducer.sum)

    async def _barrier(self, rounds):
        for _ in range(rounds):
            await self.allreduce()

    async def _broadcast(self, rounds):
        for first in range(0, rounds, self.batch):
            count = min(self.batch, rounds - first)
            if self.index == 0:
                for _ in range(count):
                    self.proxy.take(0, self.data)
            await self.arrivals(count)
            await self.allreduce()

    def take_sum(self, total):
        self.take(0, total)

    async def _reduce(self, rounds):
        for first in range(0, rounds, self.batch):
            count = min(self.batch, rounds - first)
            for _ in range(count):
                self.contribute(self.value, weft.Reducer.sum, self.proxy[0].take_sum)
            if self.index == 0:
                await self.arrivals(count)
            await self.allreduce()

    async def _all_reduce(self, rounds):
        for _ in range(rounds):
            total = await self.allreduce(self.value, weft.Reducer.sum)
        assert np.all(np.equal(total, self.pes))

    async def _all_gather(self, rounds):
        for _ in range(rounds):
            values = await self.allreduce(self.value, weft.Reducer.gather)
        assert len(values) == self.pes

    async def _all_to_all(self, rounds):
        members = [self.proxy[(self.index + other) % self.pes] for other in range(1, self.pes + 1)]
        for number in range(rounds):
            # A member that has all of this round may send those of the next one, and no later ones.
            lane = number % 2
            for member in members:
                member.take(lane, self.data)
            await self.arrivals(self.pes, lane)


def figure(operation, round_us, pes):
    """Million messages per second, or microseconds of a round."""
    if operation == "windows":
        return WINDOW * (pes // 2) / round_us
    if operation == "all_to_one":
        return FLOOD * (pes - 1) / round_us
    return round_us


async def measure(members, budget_s, operation, size_bytes):
    warmup = 0

    async def run(rounds):
        return max(await members.time_run.call(operation, size_bytes, rounds))

    # As run_after() of points.h.
    rounds = 1
    while True:
        fastest_s = max(min([await run(rounds) for _ in range(2)]), 1e-9)
        warmup += 2 * rounds
        is_long = fastest_s * 8 >= budget_s
        wanted = int(rounds * budget_s / fastest_s / (1 if is_long else 5))
        rounds = max(1, min(wanted, 16 * rounds))
        if is_long:
            break
    value = figure(operation, await run(rounds) / rounds * 1e6, weft.num_pes())
    line = {"operation": operation, "size_bytes": size_bytes, "value": value, "warmup": warmup}
    print(json.dumps(line), flush=True)


async def main():
    members = weft.Group(Member)
    for operation, size_bytes in POINTS:
        await measure(members, BUDGET_S, operation, size_bytes)


BUDGET_S = float(sys.argv[1])
POINTS = [(name, int(size)) for name, _, size in (text.partition(":") for text in sys.argv[2:])]
if not all(name in OPERATIONS for name, _ in POINTS):
    sys.exit(f"benchmark: operations are {', '.join(OPERATIONS)}")

weft.run(main)
