"""Collective operations of Weft in Python, a chare on each PE. The same for mpi4py: mpi4py_collectives.py.

    weft_collectives.py broadcast|allreduce SIZE:ITERATIONS:WARMUP...

broadcast: PE 0 sends an array in place to all PEs and learns that all have it. allreduce: the sum of an
array of doubles of each PE, on all PEs. The figure is the mean time of one operation on PE 0.
"""

import json
import sys
import time

import numpy as np
from measuring import Step

import weft

BENCH, STEPS = sys.argv[1], [Step.parse(text) for text in sys.argv[2:]]


class Member(weft.Chare):
    def take(self, data):
        assert data[-1] == 1

    async def broadcasts(self, size_bytes, count):
        data = np.ones(size_bytes, np.uint8)
        for _ in range(count):
            await self.proxy.take.call(weft.nocopy(data))

    async def allreduces(self, size_bytes, count):
        values = np.full(size_bytes // 8, self.index + 1.0)
        for _ in range(count):
            total = await self.allreduce(values, weft.Reducer.sum)
        assert total[-1] == weft.num_pes() * (weft.num_pes() + 1) / 2

    async def play(self, size_bytes, count):
        await self.allreduce()
        start = time.perf_counter()
        await self.allreduces(size_bytes, count)
        return time.perf_counter() - start


async def main():
    members = weft.Group(Member)
    for step in STEPS:
        for count in (step.warmup, step.iterations):
            if BENCH == "allreduce":
                elapsed_s = (await members.play.call(step.size_bytes, count))[0]
            else:
                start = time.perf_counter()
                await members[0].broadcasts.call(step.size_bytes, count)
                elapsed_s = time.perf_counter() - start
        figure = {"size_bytes": step.size_bytes, "metric": "time_us", "value": elapsed_s / count * 1e6}
        print(json.dumps(figure), flush=True)


weft.run(main)
