#!/usr/bin/env python3
"""Gives one job other numbers of PEs at random times, while its chares call one another.

    tools/resize_campaign.py --resizes 1000 --seed 1 [--most-pes 4] [--kills 0]

The job is tests/recovery/programs/resized_cells.py under `weft run --on-loss restart`. It counts each message
that a chare gets. It must end with the results of a job that keeps its PEs, and leave nothing in /dev/shm.
With --kills so many PEs are killed at random times besides.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weft._cli.resize import _ask, _launcher_of
from weft.launch.command import UsageError

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "recovery" / "programs" / "resized_cells.py"
HANG_S = 60.0
CHANGE = re.compile(r"the job goes from \d+ to \d+ PE")


def start(steps: int, num_pes: int, errors: Path) -> subprocess.Popen[str]:
    """A job that nothing disturbs yet."""
    command = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), "--on-loss", "restart"]
    with errors.open("w") as stderr:
        return subprocess.Popen(
            [*command, str(PROGRAM), str(steps), ""], stdout=subprocess.PIPE, stderr=stderr, text=True
        )


def results_of(job: subprocess.Popen[str], timeout_s: float) -> str:
    """The line that does not depend on the number of PEs."""
    stdout = job.communicate(timeout=timeout_s)[0]
    lines = [line for line in stdout.splitlines() if line.startswith("results ")]
    return lines[-1] if lines and job.returncode == 0 else ""


def children_of(pid: int) -> list[int]:
    """The processes of the PEs that there are now."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def segments_of(job: subprocess.Popen[str]) -> Path | None:
    """The folder of the job's shared memory, which goes with it."""
    end = time.monotonic() + HANG_S
    while job.poll() is None and time.monotonic() < end:
        for pid in children_of(job.pid):
            with contextlib.suppress(OSError):
                for setting in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    if setting.startswith(b"UCX_POSIX_DIR="):
                        return Path(setting.partition(b"=")[2].decode())
        time.sleep(0.01)
    return None


class Disturber:
    """Asks for random numbers of PEs, and kills random PEs, until it has done enough."""

    def __init__(self, job: subprocess.Popen[str], errors: Path, options: argparse.Namespace) -> None:
        self._job = job
        self._errors = errors
        self._most_pes: int = options.most_pes
        self._fewest_pes = 1 if options.kills == 0 else 2  # the only PE cannot be lost
        self._random = random.Random(options.seed)
        self._kills_left: int = options.kills
        self._kill_every = max(1, options.resizes // max(1, options.kills))

    def changes(self) -> int:
        """How often the job has got another number of PEs."""
        return len(CHANGE.findall(self._errors.read_text()))

    def run(self, resizes: int) -> int:
        """Returns how often the job has got another number of PEs. A job that makes no progress hangs."""
        path = ""
        done, last = 0, time.monotonic()
        while done < resizes and self._job.poll() is None:
            with contextlib.suppress(UsageError):
                path = path or _launcher_of(self._job.pid)
                _ask(path, self._random.randint(self._fewest_pes, self._most_pes))
            time.sleep(self._random.uniform(0.0, 0.03))
            now = self.changes()
            if now > done:
                done, last = now, time.monotonic()
                if self._kills_left > 0 and done % self._kill_every == 0:
                    self._kill_one()
            elif time.monotonic() > last + HANG_S:
                break
        return done

    def _kill_one(self) -> None:
        pids = children_of(self._job.pid)
        if pids:
            self._kills_left -= 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(pids), signal.SIGKILL)


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
        errors = Path(folder, "errors")
        began = time.monotonic()
        job = start(steps, 2, errors)
        segments = segments_of(job)
        done = Disturber(job, errors, options).run(options.resizes)
        try:
            results = results_of(job, HANG_S + (time.monotonic() - began))
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGUSR1)  # it says what waits for what
            time.sleep(3)
            job.kill()
            results = "hangs"
        seconds = time.monotonic() - began
        words = errors.read_text()
        expected = results_of(start(steps, 2, Path(folder, "undisturbed")), 10 * HANG_S)
    left = [] if segments is None or not segments.exists() else [str(segments)]
    is_right = results == expected != "" and done >= options.resizes
    recoveries = words.count("the job begins again")
    print(
        f"{done} resizes and {recoveries} recoveries in {seconds:.0f} s, results "
        f"{'right' if is_right else 'wrong'}, left: {left or 'nothing'}"
    )
    if not is_right:
        print(words[-4000:])
    return 0 if is_right and not left else 1


if __name__ == "__main__":
    sys.exit(main())
