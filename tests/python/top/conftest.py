"""Jobs to look at. Other tests run jobs at the same time, so a test names its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "exchange.py"
HANG_S = 150


class LookedAtJob:
    """A job under way. `end()` ends it in order."""

    def __init__(self, stop: Path, launcher: list[str], *arguments: str) -> None:
        self._stop = stop
        argv = [sys.executable, *launcher, str(PROGRAM), str(stop), *arguments]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            pytest.fail(f"the job did not start:\n{self.process.communicate()[1]}")

    @property
    def number(self) -> int:
        return self.process.pid

    def read_errors_until(self, text: str) -> None:
        """Waits until a line with that text comes on stderr."""
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        assert any(text in line for line in lines), "the job has ended"

    def end(self) -> str:
        """Returns what it wrote to stderr, if that was not read yet."""
        self._stop.touch()
        _, errors = self.process.communicate(timeout=HANG_S)
        return errors


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LookedAtJob]]:
    """start(launcher arguments, program arguments...) starts a job."""
    jobs: list[LookedAtJob] = []

    def start_job(launcher: list[str], *arguments: str) -> LookedAtJob:
        jobs.append(LookedAtJob(tmp_path / f"stop-{len(jobs)}", launcher, *arguments))
        return jobs[-1]

    yield start_job
    for job in jobs:
        if job.process.poll() is None:
            job.process.terminate()
            job.process.communicate(timeout=HANG_S)


@pytest.fixture
def weft_top() -> Callable[..., subprocess.CompletedProcess[str]]:
    """weft_top(arguments...) runs `weft top` without a terminal."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "weft", "top", "--interval", "0.5", *map(str, arguments)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL)

    return run
