"""How the tests run programs that hang."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
# A program that takes longer is not reported.
LIMIT_S = 60

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_hanging(tmp_path: Path) -> Run:
    """run_hanging(2, "0.5,end", program, arguments..., options=[...]): with that value of --hang-report."""

    def run(
        num_pes: int, hang_report: str, program: object, *arguments: str, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        launcher = ["-m", "weft", "run", "-n", str(num_pes), "--hang-report", hang_report, *options]
        return subprocess.run(
            [sys.executable, *launcher, str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            cwd=tmp_path,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/ranks.c, compiled by `weft mpicc`."""
    program = tmp_path_factory.mktemp("hangs") / "ranks"
    command = [sys.executable, "-m", "weft", "mpicc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run([*command, str(PROGRAMS / "ranks.c"), "-o", str(program)], check=True, timeout=LIMIT_S)
    return program
