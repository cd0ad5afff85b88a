"""Runs the programs of this folder as jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT_S = 60

RunJob = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def run_job() -> RunJob:
    """run_job(num_pes, program, *arguments): one PE runs without launcher, several under `weft run`.

    `environment` is added to this process's.
    """

    def run(
        num_pes: int, program: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        script = [str(PROGRAMS / program), *arguments]
        launcher = [] if num_pes == 1 else ["-m", "weft", "run", "-n", str(num_pes)]
        return subprocess.run(
            [sys.executable, *launcher, *script],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture(scope="session")
def expect_success(run_job: RunJob) -> Callable[..., str]:
    """Runs a job that checks itself and returns what it printed."""

    def run(num_pes: int, program: str, *arguments: str, **options: Any) -> str:
        ended = run_job(num_pes, program, *arguments, **options)
        assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    return run
