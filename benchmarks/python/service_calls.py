"""Calls of chares from an event loop of asyncio beside PE 0: how long one takes, and how many a second.

    python service_calls.py                  on one PE
    weft run -n 2 service_calls.py           the chares are on two PEs, in turn

A call has two small arguments and a small result. latency_us: a coroutine awaits calls one after the other;
the value is the mean of the best of RUNS. rate_Mps: COUNT coroutines that await a call each, in one
asyncio.gather (`--way tasks`), or the calls themselves in it (`--way calls`). The timed part begins before
the first coroutine or call is made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import weft


class Store(weft.Chare):
    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def put(self, key: int, value: int) -> int:
        self.values[key] = value
        return key


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--way", choices=("tasks", "calls"), default="tasks")
    parser.add_argument("--count", type=int, default=5000, help="calls of a run")
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


async def best_seconds(runs: int, work: Callable[[], Awaitable[Any]]) -> float:
    seconds = []
    for _ in range(runs + 1):  # the first is the warm-up
        begin = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])


def report(metric: str, value: float) -> None:
    print(json.dumps({"size_bytes": 8, "metric": metric, "value": value}), flush=True)


async def measure(stores: weft.CollectionProxy, chosen: argparse.Namespace) -> None:
    async def one(i: int) -> int:
        return await stores[i % len(stores)].put.call(i, i)

    async def in_turn() -> None:
        for i in range(chosen.count // 10):
            await one(i)

    async def together() -> None:
        if chosen.way == "tasks":
            results = await asyncio.gather(*[one(i) for i in range(chosen.count)])
        else:
            results = await asyncio.gather(
                *[stores[i % len(stores)].put.call(i, i) for i in range(chosen.count)]
            )
        assert results == list(range(chosen.count))

    report("latency_us", await best_seconds(chosen.runs, in_turn) / (chosen.count // 10) * 1e6)
    report("rate_Mps", chosen.count / await best_seconds(chosen.runs, together) / 1e6)


async def main() -> None:
    chosen = options()
    await weft.asyncio_future(measure(weft.Array(Store, 4), chosen))


if __name__ == "__main__":
    weft.run(main)
