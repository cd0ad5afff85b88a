"""Moves of chares between two PEs of charm4py; arguments, rounds and output as of migration_times.py.

    python -m charmrun.start +p2 ++local benchmarks/python/charm4py_migration.py COUNT:SIZE:HOPS:ROUNDS...
    mpiexec -n 2 python benchmarks/python/charm4py_migration.py COUNT:SIZE:HOPS:ROUNDS...

The first line starts a charm4py from PyPI, the second one a charm4py on UCX or MPI (benchmarks/README.md).

charm4py cannot move a chare from inside `migrated()`, which runs while the chare is unpacked. A chare that
arrives sends itself a message, which moves it again. That message is part of the time of a hop.
"""

import json
import statistics
import sys
import time

import numpy as np
from charm4py import Array, ArrayMap, Chare, Future, Group, Reducer, charm
from measuring import pin


class Pin(Chare):
    def keep_core(self):
        pin(charm.myPe())


class OnPe0(ArrayMap):
    def procNum(self, index):  # noqa: N802 - charm4py's name
        return 0


class Traveller(Chare):
    def __init__(self, size_bytes):
        self.state = np.ones(size_bytes, "u1")
        self.hops_left = 0
        self.arrived = None

    def go(self, hops, arrived):
        self.hops_left, self.arrived = hops, arrived
        self.hop()

    def hop(self):
        self.hops_left -= 1
        self.migrate(1 - charm.myPe())

    def migrated(self):
        if self.hops_left > 0:
            self.thisProxy[self.thisIndex].hop()
        else:
            self.contribute(1, Reducer.sum, self.arrived)


def report(metric, size_bytes, value):
    print(json.dumps({"size_bytes": size_bytes, "metric": metric, "value": value}), flush=True)


def main(args):
    if charm.numPes() != 2:
        sys.exit(f"this needs 2 PEs, and charm4py was started with {charm.numPes()}")
    Group(Pin).keep_core(awaitable=True).get()
    on_pe_0 = Group(OnPe0)
    for argument in args[1:]:
        count, size_bytes, hops, rounds = map(int, argument.split(":"))
        # charm4py cannot destroy an array, so the chares of earlier arguments stay. They do not move.
        travellers = Array(Traveller, count, args=[size_bytes], map=on_pe_0)
        charm.awaitCreation(travellers)
        times_s = []
        for _ in range(rounds + 1):
            arrived = Future()
            start_s = time.perf_counter()
            travellers.go(hops, arrived)
            assert arrived.get() == count
            times_s.append(time.perf_counter() - start_s)
        median_s = statistics.median(times_s[1:])
        if hops > 1:
            report("hop_us", size_bytes, median_s / hops * 1e6)
        else:
            report(f"{count}_moves_ms", size_bytes, median_s * 1e3)
    exit()


charm.start(main)
