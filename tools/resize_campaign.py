#!/usr/bin/env python3
"""Gives one job other numbers of PEs at random times, while its chares call one another.

    tools/resize_campaign.py --resizes 1000 --seed 1 [--most-pes 4] [--kills 0]

The job is tests/recovery/programs/resized_cells.py under `weft run --on-loss restart`. It counts each message
that a chare gets. It must end with the results of a job that keeps its PEs, and leave no process, no file
and no shared memory.
With --kills so many PEs are killed at random times besides.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from campaign_job import HANG_S, Job

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "recovery" / "programs" / "resized_cells.py"
NUM_PES = 2  # at first
LONG_S = 600.0


def start(steps: int, folder: Path) -> Job:
    """A job that nothing disturbs yet."""
    folder.mkdir()
    return Job(NUM_PES, [str(PROGRAM), str(steps), ""], folder)


def results_of(job: Job) -> str:
    """The line that does not depend on the number of PEs."""
    code = job.wait(LONG_S)
    job.close()
    lines = [line for line in job.stdout.splitlines() if line.startswith("results ")]
    return lines[-1] if lines and code == 0 else "hangs" if code is None else ""


class Disturber:
    """Asks for random numbers of PEs, and kills random PEs, until it has done enough."""

    def __init__(self, job: Job, options: argparse.Namespace) -> None:
        self._job = job
        self._most_pes: int = options.most_pes
        self._fewest_pes = 1 if options.kills == 0 else 2  # the only PE cannot be lost
        self._random = random.Random(options.seed)
        self._kills_left: int = options.kills
        self._kill_every = max(1, options.resizes // max(1, options.kills))

    def run(self, resizes: int) -> int:
        """Returns how often the job has got another number of PEs. A job that makes no progress hangs."""
        done, last = 0, time.monotonic()
        while done < resizes and self._job.is_running:
            self._job.resize(self._random.randint(self._fewest_pes, self._most_pes))
            time.sleep(self._random.uniform(0.0, 0.03))
            now = self._job.resizes
            if now > done:
                done, last = now, time.monotonic()
                if self._kills_left > 0 and done % self._kill_every == 0:
                    self._kill_one()
            elif time.monotonic() > last + HANG_S:
                break
        return done

    def _kill_one(self) -> None:
        if pids := sorted(self._job.pes().values()):
            self._kills_left -= 1
            self._job.kill(self._random.choice(pids))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resizes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-pes", type=int, default=4)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument(
        "--steps",
        type=int,
        default=0,
        help="of the job; by itself 30 for each resize",
    )
    options = parser.parse_args()
    steps = options.steps or 30 * options.resizes
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        job = start(steps, Path(folder, "job"))
        done = Disturber(job, options).run(options.resizes)
        results = results_of(job)
        seconds = time.monotonic() - began
        expected = results_of(start(steps, Path(folder, "undisturbed")))
        words, left, recoveries = job.stderr, job.leftovers(), job.recoveries
    is_right = results == expected != "" and done >= options.resizes
    print(
        f"{done} resizes and {recoveries} recoveries in {seconds:.0f} s, results "
        f"{'right' if is_right else 'wrong'}, left: {left or 'nothing'}"
    )
    if not is_right:
        print(words[-4000:])
    return 0 if is_right and not left else 1


if __name__ == "__main__":
    sys.exit(main())
