"""How long the start of PEs from a running program takes, and a call in a session: medians.

    python benchmarks/python/session_times.py [PES [RUNS CALLS]]

The program is warm: weft is imported and has run a job. "first_result" is one weft.run(main, pes=PES) from
call to return, so with the end of the job; the class travels by value. "cpu_of_first_result" is the processor
time of all its processes. "call" is one Session.run that calls a chare on each PE.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable

import weft

DEFAULTS = [2, 11, 201]


class Echo(weft.Chare):
    """One per PE."""

    def echo(self, value: int) -> int:
        return value


async def main() -> list[int]:
    return await weft.Group(Echo).echo.call(1)


def times_s(function: Callable[[], object], runs: int) -> list[float]:
    """Seconds of each run."""
    taken = []
    for _ in range(runs):
        begin = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begin)
    return taken


def cpu_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def report(metric: str, pes: int, taken: list[float]) -> None:
    """Prints a record."""
    median, low, high = statistics.median(taken), min(taken), max(taken)
    record = {"bench": "session", "metric": metric, "unit": "s", "pes": pes, "runs": len(taken)}
    print(json.dumps({**record, "median": median, "min": low, "max": high}))


def measure(pes: int, runs: int, calls: int) -> None:
    """Prints the records."""
    weft.run(main, pes=pes)
    before = cpu_s()
    report("first_result", pes, times_s(lambda: weft.run(main, pes=pes), runs))
    report("cpu_of_first_result", pes, [(cpu_s() - before) / runs])
    with weft.session(pes=pes) as session:
        echoes = session.run(lambda: weft.Group(Echo))
        report("call", pes, times_s(lambda: session.run(lambda: echoes.echo.call(1)), calls))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    measure(*given, *DEFAULTS[len(given) :])
