"""How the tests of MPI compile and run programs in C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "mpi"

# A program that takes longer hangs.
HANG_S = 60


@pytest.fixture(scope="session")
def mpi_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """mpi_program("ring"): tests/mpi/ring.c or ring.cpp, compiled by `weft mpicc` or `weft mpicxx`."""
    folder = tmp_path_factory.mktemp("mpi_programs")

    def compiled(name: str) -> Path:
        program = folder / name
        if not program.exists():
            source = PROGRAMS / f"{name}.c"
            compiler = ["mpicc", "-std=c99"]
            if not source.exists():
                source = PROGRAMS / f"{name}.cpp"
                compiler = ["mpicxx", "-std=c++17"]
            command = [sys.executable, "-m", "weft", *compiler, "-Wall", "-Wextra", "-Werror", "-O1"]
            subprocess.run([*command, source, "-o", program], check=True, timeout=HANG_S)
        return program

    return compiled


@pytest.fixture
def run_mpi(
    mpi_program: Callable[[str], Path], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """run_mpi("ring", 4, arguments...) runs it on 4 PEs; None instead of 4 runs it without a launcher."""

    def run(name: str, num_pes: int | None, *arguments: object) -> subprocess.CompletedProcess[str]:
        launcher = [] if num_pes is None else [sys.executable, "-m", "weft", "run", "-n", str(num_pes)]
        argv = [*launcher, str(mpi_program(name)), *map(str, arguments)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path, check=False)

    return run
