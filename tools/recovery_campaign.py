#!/usr/bin/env python3
"""Kills PEs of a job at random times and compares what it prints with an undisturbed job.

    tools/recovery_campaign.py --jobs 100 --seed 1 [--pes 4] [--most-losses 3] [--steps 200]

Each job is tests/recovery/programs/cells.py under `weft run --on-loss restart`. A job must end with the same
values. One that ends in words is counted, because a PE and its buddy may have been lost at once. The seed of
a job is printed if anything is wrong: `--jobs 1 --seed N` runs it again.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "recovery" / "programs" / "cells.py"
HANG_S = 60.0
#: After how many losses without a weft.protect in between a job ends.
MOST_LOSSES = 5


def start(num_pes: int, steps: int) -> subprocess.Popen[str]:
    """A job without losses of its own."""
    command = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), "--on-loss", "restart"]
    return subprocess.Popen(
        [*command, str(PROGRAM), ""],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "CELLS_STEPS": str(steps)},
    )


def pes_of(job: subprocess.Popen[str]) -> list[int]:
    """The processes of the PEs that there are now."""
    try:
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    except OSError:
        return []
    return [int(pid) for pid in children]


def pe_of(pid: int) -> int:
    """The number of the PE that the process is."""
    for setting in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if setting.startswith(b"WEFT_PE="):
            return int(setting.removeprefix(b"WEFT_PE="))
    raise ProcessLookupError


def disturb(
    job: subprocess.Popen[str], random_numbers: random.Random, losses: int, job_s: float
) -> list[int]:
    """Kills PEs at random times of a job that takes `job_s` undisturbed. Returns which."""
    killed = []
    times = sorted(random_numbers.uniform(0.0, job_s) for _ in range(losses))
    began = time.monotonic()
    for at in times:
        time.sleep(max(0.0, began + at - time.monotonic()))
        pids = pes_of(job)
        if job.poll() is None and pids:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # it has ended meanwhile
                pid = random_numbers.choice(pids)
                pe = pe_of(pid)
                os.kill(pid, signal.SIGKILL)
                killed.append(pe)
    return killed


def is_documented(stderr: str, killed: list[int], num_pes: int) -> bool:
    """Whether a job may end with these words after those losses (docs/recovery.md)."""
    lost = set(killed)
    if "no chares can be recovered" in stderr:
        return len(lost) == num_pes
    if "cannot be recovered" in stderr:
        return any((pe + 1) % num_pes in lost for pe in lost)
    if "without a weft.protect in between" in stderr:
        return len(killed) > MOST_LOSSES
    return "had finished" in stderr


def values_in(text: str) -> str:
    """The line that does not depend on losses."""
    lines = [line for line in text.splitlines() if line.startswith("values ")]
    return lines[-1] if lines else ""


def run_one(seed: int, options: argparse.Namespace, expected: str, job_s: float) -> str:
    """Runs a job. Returns how it has ended; all but "right" and "words" is wrong."""
    random_numbers = random.Random(seed)
    job = start(options.pes, options.steps)
    killed = disturb(job, random_numbers, random_numbers.randint(1, options.most_losses), job_s)
    try:
        stdout, stderr = job.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        print(f"seed {seed}: hangs\n{job.communicate()[1]}", flush=True)
        return "hangs"
    if job.returncode == 0 and values_in(stdout) == expected:
        return "right"
    if job.returncode != 0 and is_documented(stderr, killed, options.pes):
        if options.verbose:
            print(f"seed {seed}: exit code {job.returncode}\n{stderr}", flush=True)
        return "words"
    print(f"seed {seed}: killed {killed}, exit code {job.returncode}\n{stdout}\n{stderr}", flush=True)
    return "wrong"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first job; the next one has the next number"
    )
    parser.add_argument("--pes", type=int, default=4)
    parser.add_argument("--most-losses", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200, help="of each job")
    parser.add_argument("--verbose", action="store_true", help="print the words of jobs that end in words")
    options = parser.parse_args()
    began = time.monotonic()
    expected = values_in(start(options.pes, options.steps).communicate(timeout=HANG_S)[0])
    job_s = time.monotonic() - began
    if not expected:
        raise SystemExit("the undisturbed job has printed no values")
    before = set(os.listdir("/dev/shm"))
    ends = collections.Counter(
        run_one(options.seed + i, options, expected, job_s) for i in range(options.jobs)
    )
    left = [name for name in set(os.listdir("/dev/shm")) - before if not name.startswith("weft-segments-")]
    print(dict(ends), f"left in /dev/shm: {left or 'nothing'}")
    return 0 if not left and not ends["wrong"] and not ends["hangs"] else 1


if __name__ == "__main__":
    sys.exit(main())
