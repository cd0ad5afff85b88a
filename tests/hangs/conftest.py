"""How the tests run programs that hang."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
# A program that takes longer is not reported.
LIMIT_S = 120

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def run_hanging(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """run_hanging(2, "0.5,end", program, arguments..., options=[...]): with that value of --hang-report."""

    def run(
        num_pes: int, hang_report: str, program: object, *arguments: str, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        launcher = ["-m", "weft", "run", "-n", str(num_pes), "--hang-report", hang_report]
        # At the limit the launcher says where each PE is.
        limit = () if "--timeout" in options else ("--timeout", str(LIMIT_S))
        return subprocess.run(
            [sys.executable, *launcher, *limit, *options, str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=2 * LIMIT_S,
            cwd=tmp_path_factory.mktemp("job"),
            check=False,
        )

    return run


def compile_ranks(folder: Path, name: str) -> Path:
    program = folder / name
    command = [sys.executable, "-m", "weft", "mpicc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1"]
    source = PROGRAMS / f"{name}.c"
    subprocess.run([*command, str(source), "-o", str(program), "-lpthread"], check=True, timeout=LIMIT_S)
    return program


@pytest.fixture(scope="session")
def wrong_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/wrong_ranks.c, compiled by `weft mpicc`."""
    return compile_ranks(tmp_path_factory.mktemp("hangs"), "wrong_ranks")


@pytest.fixture(scope="session")
def right_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/right_ranks.c, compiled by `weft mpicc`."""
    return compile_ranks(tmp_path_factory.mktemp("hangs"), "right_ranks")
