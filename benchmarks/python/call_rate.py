"""Calls of one integer from all PEs to chares of all other PEs, as call_rate.cpp.

Prints the millions per second of all PEs together.

    call_rate.py --way single|aggregated|elements [--calls N] [--chares N] [--runs N]

aggregated: many.add(i, 1). elements: many[i].add(1).
"""

import argparse
import json
import random
import time

from measuring import pin

import weft


class Counter(weft.Chare):
    def __init__(self):
        self.sum = 0

    def add(self, value):
        self.sum += value

    def total(self):
        return self.sum


class Caller(weft.Chare):
    def __init__(self):
        pin(weft.my_pe())
        first = weft.my_pe() * OPTIONS.chares
        own = range(first, first + OPTIONS.chares)
        others = [i for i in range(OPTIONS.chares * weft.num_pes()) if i not in own]
        self.targets = random.Random(weft.my_pe()).choices(others, k=OPTIONS.calls)

    async def make_calls(self, counters):
        if OPTIONS.way == "aggregated":
            add = counters.aggregated().add
            for i in self.targets:
                await add(i, 1)
        else:
            elements = counters if OPTIONS.way == "single" else counters.aggregated()
            for i in self.targets:
                await elements[i].add(1)


async def main():
    counters = weft.Array(Counter, OPTIONS.chares * weft.num_pes())
    callers = weft.Group(Caller)
    await weft.quiescence()
    times_s = []
    for _ in range(OPTIONS.runs):
        start = time.perf_counter()
        callers.make_calls(counters)
        await weft.quiescence()
        times_s.append(time.perf_counter() - start)
    calls = OPTIONS.calls * weft.num_pes()
    assert sum(await counters.total.call()) == calls * OPTIONS.runs
    line = {"size_bytes": 8, "metric": "rate_Mps", "value": calls / min(times_s) / 1e6}
    print(json.dumps(line), flush=True)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--way", choices=("single", "aggregated", "elements"), default="single")
parser.add_argument("--calls", type=int, default=200_000, help="of each PE")
parser.add_argument("--chares", type=int, default=1000, help="of each PE")
parser.add_argument("--runs", type=int, default=5)
OPTIONS = parser.parse_args()

weft.run(main)
