"""A histogram whose bins lie on all PEs, as histogram.cpp: millions of values per second of all PEs together.

    histogram.py --way single|aggregated [--values N] [--chares N] [--bins N] [--runs N]

Each PE draws its values with NumPy, and verifies with NumPy what the chares have counted.
"""

import argparse
import json
import time

import numpy as np
from measuring import pin

import weft


class Bins(weft.Chare):
    def __init__(self):
        self.counts = [0] * OPTIONS.bins  # single elements of a list change faster than those of an array

    def add(self, bin_):
        self.counts[bin_] += 1

    def all_counts(self):
        return np.array(self.counts)


class Counter(weft.Chare):
    def __init__(self):
        pin(weft.my_pe())
        values = np.random.default_rng(weft.my_pe()).integers(num_bins(), size=OPTIONS.values)
        self.expected = np.bincount(values, minlength=num_bins()) * OPTIONS.runs
        chares, bins = np.divmod(values, OPTIONS.bins)
        self.places = list(zip(chares.tolist(), bins.tolist(), strict=True))

    async def count(self, bins):
        if OPTIONS.way == "aggregated":
            add = bins.aggregated().add
            for chare, bin_ in self.places:
                await add(chare, bin_)
        else:
            for chare, bin_ in self.places:
                await bins[chare].add(bin_)

    def expected_counts(self):
        return self.expected


def num_bins():
    return OPTIONS.chares * weft.num_pes() * OPTIONS.bins


async def main():
    bins = weft.Array(Bins, OPTIONS.chares * weft.num_pes())
    counters = weft.Group(Counter)
    await weft.quiescence()
    times_s = []
    for _ in range(OPTIONS.runs):
        start = time.perf_counter()
        counters.count(bins)
        await weft.quiescence()
        times_s.append(time.perf_counter() - start)
    counts = np.concatenate(await bins.all_counts.call())
    assert np.array_equal(counts, sum(await counters.expected_counts.call())), "counts are wrong"
    rate = OPTIONS.values * weft.num_pes() / min(times_s) / 1e6
    print(json.dumps({"size_bytes": 8, "metric": "rate_Mps", "value": rate}), flush=True)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--way", choices=("single", "aggregated"), default="aggregated")
parser.add_argument("--values", type=int, default=200_000, help="of each PE and run")
parser.add_argument("--chares", type=int, default=4, help="of each PE")
parser.add_argument("--bins", type=int, default=4096, help="of each chare")
parser.add_argument("--runs", type=int, default=5)
OPTIONS = parser.parse_args()

weft.run(main)
