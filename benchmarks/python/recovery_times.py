"""The time of a recovery, and the cost of weft.protect: medians.

    python benchmarks/python/recovery_times.py [--pes 8] [--size BYTES] [--runs 7] [--json FILE]

Each PE has one chare with a NumPy array of --size bytes. "recovery" is the time from SIGKILL for a PE, each
time another one, until main has begun again and each chare has answered a call. "protect" is one weft.protect
of all chares. "message" is the time in which each chare sends its array to the chare on the next PE, all at
once, and has the answer. "protect_over_message" is the ratio of the medians. Prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import numpy as np

import weft

PROTECTIONS = 21
#: Between the moment at which a job is ready and the loss.
REST_S = 0.3


class Cell(weft.Chare):
    """One per PE."""

    def __init__(self, size_bytes: int) -> None:
        self.values = np.zeros(size_bytes // 8)

    def advance(self) -> float:
        self.values += 1
        return float(self.values[-1])

    async def give(self) -> None:
        await self.proxy[(self.index + 1) % len(self.proxy)].take.call(self.values)

    def take(self, values: np.ndarray) -> int:
        return len(values)


async def measure_protect(cells: Cell) -> None:
    """Prints the times of both in turn. The first of each, which allocates memory, does not count."""
    times: dict[str, list[float]] = {"protect": [], "message": []}
    for _ in range(PROTECTIONS + 1):
        begin = time.monotonic()
        await weft.protect({"cells": cells})
        middle = time.monotonic()
        await cells.give.call()
        times["protect"].append(middle - begin)
        times["message"].append(time.monotonic() - middle)
    for name, taken in times.items():
        print(name, *taken[1:], flush=True)


async def main() -> None:
    """Of the job: recovers, says so, and waits for a loss."""
    size_bytes, runs = map(int, sys.argv[2:])
    saved = await weft.recovered()
    if saved is None:
        cells = weft.Array(Cell, weft.num_pes(), args=(size_bytes,))
        await measure_protect(cells)
    else:
        cells = saved["cells"]
    await cells.advance.call()
    print("recovered", time.monotonic(), flush=True)
    await weft.protect({"cells": cells})
    if weft.recoveries() == runs:
        return
    print("ready", flush=True)
    await weft.sleep(3600)


def read(lines: IO[str], name: str) -> list[float]:
    """The numbers of the next line of that name."""
    for line in lines:
        first, *numbers = line.split()
        if first == name:
            return [float(number) for number in numbers]
    raise SystemExit(f"the job has ended and not printed '{name}'")


def pid_of(launcher: int, pe: int) -> int:
    """The process of a PE."""
    for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        if f"WEFT_PE={pe}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return int(pid)
    raise SystemExit(f"PE {pe} has no process")


def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """Runs the job. Returns the times, in seconds."""
    command = [sys.executable, "-m", "weft", "run", "-n", str(options.pes), "--on-loss", "restart"]
    job = subprocess.Popen(
        [*command, __file__, "--job", str(options.size), str(options.runs)], stdout=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    times = {name: read(job.stdout, name) for name in ("protect", "message")}
    times["recovery"] = []
    for run in range(options.runs):
        read(job.stdout, "ready")
        time.sleep(REST_S)
        pid = pid_of(job.pid, run * 3 % options.pes)
        begin = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        times["recovery"].append(read(job.stdout, "recovered")[0] - begin)
    if job.wait() != 0:
        raise SystemExit(f"the job has ended with exit code {job.returncode}")
    return times


def report(options: argparse.Namespace) -> str:
    """A JSON line for each metric."""
    times = measure(options)
    common = {"bench": "recovery", "pes": options.pes, "size_bytes": options.size, "cores": os.cpu_count()}
    records = [
        common
        | {"metric": name, "unit": "s", "runs": len(taken), "median": statistics.median(taken)}
        | {"min": min(taken), "max": max(taken)}
        for name, taken in times.items()
    ]
    medians = {record["metric"]: record["median"] for record in records}
    ratio = medians["protect"] / medians["message"]
    records.append(common | {"metric": "protect_over_message", "unit": "1", "median": ratio})
    return "\n".join(map(json.dumps, records))


def run_bench() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pes", type=int, default=8)
    parser.add_argument("--size", type=int, default=1_000_000, metavar="BYTES", help="state of each PE")
    parser.add_argument("--runs", type=int, default=7, help="losses")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines there, too")
    options = parser.parse_args()
    text = report(options)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        weft.run(main)
    else:
        run_bench()
