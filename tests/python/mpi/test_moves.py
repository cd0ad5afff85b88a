"""Ranks that move between PEs: Weft_migrate() and Weft_load_balance()."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

PROGRAMS = Path(__file__).resolve().parents[2] / "mpi" / "virtual_ranks"
HANG_S = 120

if not (package_folder() / "lib" / virtual_ranks.HOST).exists():
    pytest.skip("THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found", allow_module_level=True)

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def moves(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """moves("moves.c", "-n 2 --ranks 4", arguments..., options=[...])."""
    folder = tmp_path_factory.mktemp("moves")

    def run(
        source: str, words: str, *arguments: object, options: tuple[str, ...] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        program = folder / re.sub(r"\W+", "_", f"{source} {' '.join(options)}")
        if not program.exists():
            wrapper = "mpicxx" if source.endswith(".cpp") else "mpicc"
            standard = "-std=c++17" if source.endswith(".cpp") else "-std=gnu99"
            command = [sys.executable, "-m", "weft", wrapper, standard, "-Wall", "-Wextra", "-Werror", "-O1"]
            sources = [str(PROGRAMS / source), *options, "-o", str(program)]
            subprocess.run([*command, *sources], check=True, timeout=HANG_S)
        launch = [sys.executable, "-m", "weft", "run", *words.split(), str(program), *map(str, arguments)]
        return subprocess.run(launch, capture_output=True, text=True, timeout=HANG_S, check=False)

    return run


def expect_all_right(outcome: subprocess.CompletedProcess[str], num_ranks: int) -> None:
    assert outcome.stderr == ""
    lines = [line for line in outcome.stdout.splitlines() if line.startswith("rank ")]
    assert sorted(lines) == sorted(f"rank {rank}: 0 failures" for rank in range(num_ranks))
    assert outcome.returncode == 0


@pytest.mark.parametrize("options", [(), ("-fPIC",), ("-O2", "-fstack-protector-all", "-D_FORTIFY_SOURCE=2")])
@pytest.mark.parametrize(
    ("words", "num_ranks"),
    [
        ("-n 2 --ranks 5", 5),
        ("-n 2 --ranks 16", 16),
        ("-n 3 --ranks 12", 12),
        ("-n 4 --ranks 37 --rank-map round-robin", 37),
    ],
)
def test_all_of_a_rank_moves_with_it(moves, options, words, num_ranks):
    outcome = moves("moves.c", words, 12, options=options)
    expect_all_right(outcome, num_ranks)
    num_moves = re.search(r"^(\d+) moves$", outcome.stdout, re.MULTILINE)
    assert num_moves is not None
    assert int(num_moves[1]) >= 5 * num_ranks


@pytest.mark.parametrize(("words", "num_ranks"), [("-n 2 --ranks 6", 6), ("-n 3 --ranks 9", 9)])
def test_objects_and_exceptions_of_cpp_move(moves, words, num_ranks):
    expect_all_right(moves("moves.cpp", words), num_ranks)


def test_one_rank_moves_among_many(moves):
    expect_all_right(moves("moves.c", "-n 2 --ranks 256", 3), 256)


def test_a_rank_that_cannot_move_says_why(moves):
    outcome = moves("moves.cpp", "-n 2 --ranks 6", "fatal")
    assert outcome.returncode != 0
    assert (
        "Weft_migrate on MPI_COMM_WORLD: rank 1 cannot move: it has communicators of MPI (1); free them"
        in outcome.stderr
    )


def test_with_one_rank_per_process_no_rank_moves(moves):
    outcome = moves("moves.cpp", "-n 2", "fatal")
    assert outcome.returncode != 0
    assert "each PE has one rank; start the program with `weft run --ranks`" in outcome.stderr
