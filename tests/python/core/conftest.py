"""Runs the programs below this folder as jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_S = 150

PROGRAMS = Path(__file__).parent / "programs"
SUPPORT = PROGRAMS / "support"  # modules that programs of several folders import

RunJob = Callable[..., "subprocess.CompletedProcess[str]"]


def program_path(name: str) -> Path:
    """A program is named without its folder."""
    found = list(PROGRAMS.glob(f"*/{name}"))
    assert len(found) == 1, f"{len(found)} programs are named {name}"
    return found[0]


def program_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, with `added`; programs find their modules."""
    environment = {**os.environ, **(added or {})}
    folders = [str(SUPPORT), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


@pytest.fixture(scope="session")
def run_job() -> RunJob:
    """run_job(num_pes, program, *arguments): one PE runs without launcher, several under `weft run`.

    `environment` is added to this process's.
    """

    def run(
        num_pes: int,
        program: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        script = [str(program_path(program)), *arguments]
        launcher = [] if num_pes == 1 else ["-m", "weft", "run", "-n", str(num_pes)]
        return subprocess.run(
            [sys.executable, *launcher, *script],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=program_environment(environment),
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
