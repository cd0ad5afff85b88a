"""Millions of empty tasks per second: a map over a pool of functions, of Weft and of Python's library.

    weft run -n 2 pool_tasks.py                                          weft.Pool on two PEs
    python pool_tasks.py --system multiprocessing --processes 2          multiprocessing.Pool.map
    python pool_tasks.py --system concurrent.futures --processes 2       ProcessPoolExecutor.map

The pool is made, and one map done, before the timed maps. The timed part begins at the call and ends when the
caller has the list of results. It prints a line for each of RUNS maps. Without --chunksize each system uses
its own default: concurrent.futures sends every task on its own.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import time
from typing import Any


def nothing(item: Any) -> None:
    pass


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", choices=("weft", "multiprocessing", "concurrent.futures"), default="weft")
    parser.add_argument("--processes", type=int, default=2, help="of the systems other than weft")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--chunksize", type=int)
    return parser.parse_args()


def report(tasks: int, seconds: float) -> None:
    value = tasks / seconds / 1e6
    print(json.dumps({"size_bytes": 0, "metric": "rate_Mps", "value": value}), flush=True)


def measure_library(chosen: argparse.Namespace) -> None:
    size = {} if chosen.chunksize is None else {"chunksize": chosen.chunksize}
    if chosen.system == "multiprocessing":
        with multiprocessing.Pool(chosen.processes) as pool:
            measure(chosen, lambda: pool.map(nothing, range(chosen.tasks), **size))
    else:
        with concurrent.futures.ProcessPoolExecutor(chosen.processes) as executor:
            measure(chosen, lambda: list(executor.map(nothing, range(chosen.tasks), **size)))


def measure(chosen: argparse.Namespace, do_map: Any) -> None:
    for run in range(chosen.runs + 1):
        begin = time.perf_counter()
        results = do_map()
        seconds = time.perf_counter() - begin
        assert len(results) == chosen.tasks
        if run > 0:
            report(chosen.tasks, seconds)


async def measure_weft(chosen: argparse.Namespace) -> None:
    import weft

    async with weft.Pool() as pool:
        for run in range(chosen.runs + 1):
            begin = time.perf_counter()
            results = await pool.map(nothing, range(chosen.tasks), chosen.chunksize)
            seconds = time.perf_counter() - begin
            assert len(results) == chosen.tasks
            if run > 0:
                report(chosen.tasks, seconds)


if __name__ == "__main__":
    chosen = options()
    if chosen.system == "weft":
        import weft

        weft.run(lambda: measure_weft(chosen))
    else:
        measure_library(chosen)
