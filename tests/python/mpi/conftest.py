"""How the tests of MPI compile and run programs in C and C++."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "mpi"

# A program that takes longer hangs; with many ranks, longer than that.
HANG_S = 150
RANKS_HANG_S = 250
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-O1")

Compile = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def mpi_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """mpi_program("tools/ring"): tests/mpi/tools/ring.c or .cpp, compiled by `weft mpicc` or `mpicxx`."""
    folder = tmp_path_factory.mktemp("mpi_programs")

    def compiled(name: str) -> Path:
        program = folder / name
        if not program.exists():
            source = PROGRAMS / f"{name}.c"
            compiler = ["mpicc", "-std=c99"]
            if not source.exists():
                source = PROGRAMS / f"{name}.cpp"
                compiler = ["mpicxx", "-std=c++17"]
            program.parent.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "weft", *compiler, *WARNINGS]
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


@pytest.fixture(scope="session")
def compile_program(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """compile_program("privacy.c", "-fPIC", ...): the program of tests/mpi/virtual_ranks."""
    folder = tmp_path_factory.mktemp("virtual_ranks")

    def compiled(source: str, *options: object) -> Path:
        words = [str(option) for option in options]
        number = hashlib.sha256(repr((source, words)).encode()).hexdigest()[:16]
        program = folder / f"{Path(source).stem}-{number}"
        if not program.exists():
            wrapper = "mpicxx" if source.endswith(".cpp") else "mpicc"
            standard = "-std=c++17" if source.endswith(".cpp") else "-std=gnu99"
            command = [
                sys.executable,
                "-m",
                "weft",
                wrapper,
                standard,
                *WARNINGS,
                PROGRAMS / "virtual_ranks" / source,
                *words,
            ]
            subprocess.run([*map(str, command), "-o", str(program)], check=True, timeout=RANKS_HANG_S)
        return program

    return compiled


@pytest.fixture
def run_ranks(tmp_path: Path) -> Run:
    """run_ranks(2, 8, program, arguments..., options=[...]): 8 ranks on 2 PEs."""

    def run(
        num_pes: int,
        num_ranks: int | None,
        program: object,
        *arguments: object,
        options: Sequence[object] = (),
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "weft", "run", "-n", num_pes]
        if num_ranks is not None:
            words += ["--ranks", num_ranks]
        return subprocess.run(
            [str(word) for word in (*words, *options, program, *arguments)],
            capture_output=True,
            text=True,
            timeout=RANKS_HANG_S,
            cwd=tmp_path,
            check=False,
            env={**os.environ, **(environment or {})},
        )

    return run
