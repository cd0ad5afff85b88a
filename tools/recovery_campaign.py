#!/usr/bin/env python3
"""Kills PEs of jobs at random times and compares their results with undisturbed jobs.

    tools/recovery_campaign.py --kills 10000 --seed 1 --parallel 8 --json campaign.json

Each job is tests/recovery/programs/mixed.py, or another --program of its kind, under `weft run --on-loss
restart`: a random program with a seed of its own. It loses one to three PEs, at once or in a row, also while
it protects or recovers. When it has protected a state again, it loses further ones, `--kills-per-job` in all.
A third of the jobs get other numbers of PEs besides, each time with a loss shortly before or after. A job
must end with the hash of an undisturbed one, or in the words of docs/recovery.md where these permit it, and
leave no process, no file and no shared memory. `--jobs 1 --seed N` runs a job again that is named. Ends with
1 if anything is wrong.

It needs files alone and a Python that has numpy and the package weft (PYTHONPATH).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import platform
import random
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

from campaign_job import HANG_S, Job

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "recovery" / "programs" / "mixed.py"
#: More steps than a job gets to.
ENDLESS = 10**7
MOST_IN_A_ROW = 3
#: How often a loss may be that of the buddy of a PE lost before, which ends a job in words.
CARELESS = 0.01
#: How often a PE is killed while the job ends.
AT_THE_END = 0.1
#: How many jobs get other numbers of PEs, and how often these do.
RESIZED_JOBS = 1 / 3
RESIZED_ROWS = 1 / 2


def is_resized(seed: int) -> bool:
    """Whether that job gets other numbers of PEs."""
    return random.Random(f"resizes {seed}").random() < RESIZED_JOBS


@dataclass
class Kill:
    """A PE that was killed, `at_s` after the start of the job.

    `kind`: first: while the job ran undisturbed, so perhaps while it protected; at_once: with the one before;
    in_a_row: while the job recovered from the one before; resizing: shortly before or after the job was asked
    for another number of PEs; at_end: while it ended.
    """

    pe: int
    at_s: float
    kind: str


@dataclass
class Record:
    """What has become of a job. `end` is right, words, wrong, hangs or leaves.

    `noise`: lines that neither the program nor `weft run` has printed.
    """

    seed: int
    pes: int
    end: str = ""
    words: str = ""
    steps: int = 0
    recoveries: int = 0
    resizes: int = 0
    seconds: float = 0.0
    kills: list[Kill] = field(default_factory=list)
    noise: list[str] = field(default_factory=list)


class MixedJob(Job):
    """A job of mixed.py, or of a program with the same arguments."""

    def __init__(self, program: Path, seed: int, num_pes: int, steps: int, folder: Path) -> None:
        variant = ["any"] if is_resized(seed) else []
        super().__init__(num_pes, [str(program), str(seed), str(steps), str(folder), *variant], folder)

    @property
    def incarnation(self) -> int:
        """The one in which it has last protected a state; -1 before the first time."""
        try:
            return int((self.folder / "progress").read_text().split()[1])
        except (OSError, IndexError):
            return -1

    def wait_for_progress(self, killed: set[int], resizes: int) -> bool:
        """Waits until a state is protected after the loss of these processes, and after so many resizes.

        Returns False if the job hangs, or has ended.
        """
        end = time.monotonic() + HANG_S
        while self.is_running and time.monotonic() < end:
            # The launcher says that the job begins again before it starts and ends processes.
            pes = self.pes()
            # A PE that leaves after a resize may still be there.
            is_whole = set(pes) == set(range(self.num_pes)) and killed.isdisjoint(pes.values())
            has_changed = self.resizes + self.refusals >= resizes
            if is_whole and has_changed and self.incarnation >= self.recoveries + self.resizes:
                return True
            time.sleep(0.005)
        return False


class Killer:
    """Kills PEs of a job at random, and resizes it."""

    def __init__(self, job: MixedJob, numbers: random.Random, pes: tuple[int, int] | None, most: int) -> None:
        """`pes`: the least and the greatest number of PEs that the job gets; None if it keeps them."""
        self._job, self._numbers, self._pes, self._most = job, numbers, pes, most
        self._recovery_s = 0.5
        self._resizes = 0  # that the launcher has accepted
        self.kills: list[Kill] = []
        self._killed: set[int] = set()  # processes
        self.row: set[int] = set()  # the PEs lost since a state was last protected

    def run(self) -> None:
        """Kills until there are enough kills, or the job has ended or hangs."""
        began = time.monotonic()
        while self._job.wait_for_progress(self._killed, self._resizes) and len(self.kills) < self._most:
            if self.kills:
                self._recovery_s = min(5.0, time.monotonic() - began)
            time.sleep(self._numbers.uniform(0, 0.2))
            self.row.clear()
            self._killed.clear()  # the numbers of processes come again
            began = time.monotonic()
            if self._pes is not None and self._numbers.random() < RESIZED_ROWS:
                self._resize(*self._pes)
            else:
                self._kill_row(self._numbers.choices(range(1, MOST_IN_A_ROW + 1), (6, 3, 2))[0])

    def _kill_row(self, losses: int) -> None:
        at_once = self._numbers.random() < 0.3
        self.kill("first")
        for _ in range(losses - 1):
            if not at_once:
                time.sleep(self._numbers.uniform(0, self._recovery_s))
            self.kill("at_once" if at_once else "in_a_row")

    def _resize(self, fewest: int, most: int) -> None:
        """One loss, because the buddies depend on whether the job has been resized already."""
        choice = [num_pes for num_pes in range(fewest, most + 1) if num_pes != self._job.num_pes]
        kill_first = self._numbers.random() < 0.5
        if kill_first:
            self.kill("resizing")
            time.sleep(self._numbers.uniform(0, self._recovery_s))
        if choice and self._job.resize(self._numbers.choice(choice)):
            self._resizes += 1
        if not kill_first:
            time.sleep(self._numbers.uniform(0, self._recovery_s))
            self.kill("resizing")

    def kill(self, kind: str) -> None:
        """Kills one PE, as a rule not the buddy of one in the row."""
        pes = self._job.pes()
        is_careless = self._numbers.random() < CARELESS
        living = [pe for pe, pid in sorted(pes.items()) if pid not in self._killed]
        choice = [pe for pe in living if is_careless or not self._is_next_to_lost(pe)]
        if not choice:
            return
        pe = self._numbers.choice(choice)
        if self._job.kill(pes[pe]):
            self._killed.add(pes[pe])
            self.row.add(pe)
            self.kills.append(Kill(pe, round(time.monotonic() - self._job.began, 3), kind))

    def _is_next_to_lost(self, pe: int) -> bool:
        return any(abs(pe - lost) in (1, self._job.num_pes - 1) for lost in self.row if lost != pe)

    @property
    def has_lost_buddies(self) -> bool:
        """Whether a PE and its buddy were lost without a protected state in between."""
        return any((pe + 1) % self._job.num_pes in self.row for pe in self.row)


def permitted_words(stderr: str, killer: Killer) -> str:
    """The words with which the job has ended, if docs/recovery.md permits them after those losses."""
    if killer.has_lost_buddies:
        for words in ("cannot be recovered", "no chares can be recovered"):
            if words in stderr:
                return words
    if killer.kills and killer.kills[-1].kind == "at_end":
        for words in ("had finished", "after it had finished"):
            if words in stderr:
                return words
    return ""


def result_in(stdout: str) -> tuple[int, str]:
    """The steps and the hash that a job has printed last. (0, "") if it has printed none."""
    found = re.findall(r"^result (\d+) (\w+)$", stdout, re.MULTILINE)
    return (int(found[-1][0]), found[-1][1]) if found else (0, "")


def undisturbed_hash(program: Path, seed: int, num_pes: int, steps: int) -> str:
    """That of a job without losses."""
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        job = MixedJob(program, seed, num_pes, steps, Path(folder))
        code = job.wait()
        job.close()
        return result_in(job.stdout)[1] if code == 0 else f"exit code {code}: {job.stderr}"


def run_one(seed: int, options: argparse.Namespace) -> Record:
    """Runs a job, and an undisturbed one with as many steps."""
    numbers = random.Random(f"campaign {seed}")
    record = Record(seed, numbers.randint(*options.pes))
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        job = MixedJob(options.program, seed, record.pes, ENDLESS, Path(folder))
        resizes_to = (max(2, options.pes[0]), options.pes[1]) if is_resized(seed) else None
        killer = Killer(job, numbers, resizes_to, options.kills_per_job)
        killer.run()
        (job.folder / "stop").touch()
        if job.is_running and numbers.random() < AT_THE_END:
            time.sleep(numbers.uniform(0, 0.3))
            killer.kill("at_end")
        code = job.wait()
        job.close()
        record.seconds = round(time.monotonic() - job.began, 2)
        record.recoveries, record.resizes, record.kills = job.recoveries, job.resizes, killer.kills
        stdout, stderr, left = job.stdout, job.stderr, job.leftovers()
        words = permitted_words(stderr, killer)
    record.steps, found = result_in(stdout)
    record.noise = [line for line in (stdout + stderr).splitlines() if "UCX" in line]
    if code is None:
        record.end = "hangs"
    elif code == 0:
        expected = undisturbed_hash(options.program, seed, record.pes, record.steps)
        record.end = "right" if found == expected else "wrong"
        stderr += f"\nexpected {expected}, found {found}"
    elif words:
        record.end, record.words = "words", words
    else:
        record.end = "wrong"
    if left:
        record.end = "leaves"
        stderr += f"\nleft: {left}"
    if record.end not in ("right", "words"):
        record.words = stderr
        print(f"seed {seed}: {record.end}, exit code {code}, {record}\n{stdout}\n{stderr}", flush=True)
    elif options.verbose:
        print(f"seed {seed}: {record.end}, {record.recoveries} recoveries, {record.seconds} s", flush=True)
    return record


def run_all(options: argparse.Namespace) -> list[Record]:
    """Jobs with one seed after the other, until there are enough kills, jobs or minutes."""
    end = time.monotonic() + 60 * options.minutes
    records: list[Record] = []

    def run_next(seed: int) -> None:
        kills = sum(len(record.kills) for record in records)
        if kills < options.kills and time.monotonic() < end:
            records.append(run_one(seed, options))

    with ThreadPoolExecutor(options.parallel) as pool:
        jobs = [pool.submit(run_next, options.seed + i) for i in range(options.jobs)]
        try:
            for job in jobs:
                job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # the jobs that have begun go on to their ends
    return records


def summary(records: list[Record], seconds: float, options: argparse.Namespace) -> dict:
    """The record of the campaign."""
    kills = [kill for record in records for kill in record.kills]
    return {
        "program": options.program.name,
        "first_seed": options.seed,
        "jobs": len(records),
        "kills": len(kills),
        "kinds": dict(collections.Counter(kill.kind for kill in kills)),
        "kills_of_pe_0": sum(kill.pe == 0 for kill in kills),
        "recoveries": sum(record.recoveries for record in records),
        "resizes": sum(record.resizes for record in records),
        "ends": dict(collections.Counter(record.end for record in records)),
        "jobs_with_noise": sum(bool(record.noise) for record in records),
        "seconds": round(seconds, 1),
        "parallel": options.parallel,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def line_of(record: Record) -> str:
    """The record of a job. A kill is a list: the PE, the second, the kind."""
    return json.dumps(asdict(record) | {"kills": [astuple(kill) for kill in record.kills]})


def num_pes_range(text: str) -> tuple[int, int]:
    """The value of --pes."""
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=PROGRAM, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=10_000, help="at most so many")
    parser.add_argument("--kills", type=int, default=100, help="no job begins after so many kills")
    parser.add_argument("--kills-per-job", type=int, default=25)
    parser.add_argument("--minutes", type=float, default=1e6, help="no job begins after that time")
    parser.add_argument("--seed", type=int, default=1, help="of the first job; the next has the next number")
    parser.add_argument("--pes", type=num_pes_range, default=(2, 6), metavar="LOW-HIGH", help="of a job")
    parser.add_argument("--parallel", type=int, default=1, help="so many jobs at a time")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write a line for the campaign and each job"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for each job")
    options = parser.parse_args()
    began = time.monotonic()
    records = run_all(options)
    found = summary(records, time.monotonic() - began, options)
    print(json.dumps(found))
    if options.json is not None:
        jobs = [line_of(record) for record in sorted(records, key=lambda record: record.seed)]
        options.json.write_text("\n".join([json.dumps(found), *jobs]) + "\n")
    return 0 if set(found["ends"]) <= {"right", "words"} else 1


if __name__ == "__main__":
    sys.exit(main())
