"""Moves of Python chares between two PEs; arguments and output as of benchmarks/migration_times.cpp.

    weft run -n 2 benchmarks/python/migration_times.py COUNT:SIZE:HOPS:ROUNDS...

The state is a NumPy array of SIZE bytes.
"""

import json
import statistics
import sys
import time

import numpy as np
from measuring import pin

import weft


class Pin(weft.Chare):
    def keep_core(self):
        pin(self.index)


class Traveller(weft.Chare):
    def __init__(self, size_bytes):
        self.state = np.ones(size_bytes, "u1")
        self.hops_left = 0
        self.arrived = None

    def go(self, hops, arrived):
        self.hops_left, self.arrived = hops, arrived
        self.hop()

    def hop(self):
        self.hops_left -= 1
        self.migrate(1 - weft.my_pe())

    def migrated(self):
        if self.hops_left > 0:
            self.hop()
        else:
            self.contribute(1, weft.Reducer.sum, self.arrived)


def report(metric, size_bytes, value):
    print(json.dumps({"size_bytes": size_bytes, "metric": metric, "value": value}), flush=True)


def on_pe_0(index):
    return 0


async def main():
    if weft.num_pes() != 2:
        sys.exit("this needs 2 PEs: weft run -n 2 migration_times.py ...")
    await weft.Group(Pin).keep_core.call()
    for argument in sys.argv[1:]:
        count, size_bytes, hops, rounds = map(int, argument.split(":"))
        travellers = await weft.Array(Traveller, count, args=(size_bytes,), map=on_pe_0)
        times_s = []
        for _ in range(rounds + 1):
            arrived = weft.Future()
            start_s = time.perf_counter()
            travellers.go(hops, arrived)
            assert await arrived == count
            times_s.append(time.perf_counter() - start_s)
        median_s = statistics.median(times_s[1:])
        if hops > 1:
            report("hop_us", size_bytes, median_s / hops * 1e6)
        else:
            report(f"{count}_moves_ms", size_bytes, median_s * 1e3)
        await travellers.destroy()


weft.run(main)
