"""The tables in programs/: each wrong program is named by its true cause, and no right one is reported."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
# The program of a table, which part of it, on how many PEs. A job runs that part, one case after the other.
JOBS = [
    (program, kind, num_pes)
    for program in ("channels", "waits", "teams")
    for kind in ("wrong", "right")
    for num_pes in (2, 4)
]
# They wait most of the time.
JOBS_AT_ONCE = 3
# A table has up to 28 cases, which wait for about a second each, and other tests run beside it.
LIMIT = ("--timeout", "200")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Outcomes = dict[tuple[str, str, int], "Future[subprocess.CompletedProcess[str]]"]


@pytest.fixture(scope="module")
def outcomes(run_hanging: Run) -> Iterator[Outcomes]:
    with ThreadPoolExecutor(JOBS_AT_ONCE) as threads:
        yield {
            job: threads.submit(run_hanging, job[2], "0.3", PROGRAMS / f"{job[0]}.py", job[1], options=LIMIT)
            for job in JOBS
        }


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_programs(outcomes: Outcomes, job: tuple[str, str, int]) -> None:
    outcome = outcomes[job].result()
    *lines, last = outcome.stdout.splitlines()
    expected = "right " if job[1] == "right" else "named "
    assert last == "done", outcome.stdout + outcome.stderr
    assert [line for line in lines if not line.startswith(expected)] == []
    assert lines
    assert outcome.returncode == 0, outcome.stderr
    # The end of a wrong program leaves its calls without a result.
    unexpected = [line for line in outcome.stderr.splitlines() if "has not awaited" not in line]
    assert unexpected == []
