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
HANG_S = 150

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
    outcome = moves("moves.cpp", words)
    # With an error handler that returns, rank 0 says why the ranks cannot move.
    reasons = outcome.stderr.splitlines()
    assert all(reason.startswith("weft: Weft_migrate: ") for reason in reasons), outcome.stderr
    for part in (
        "rank 1 cannot move: it has requests of MPI (1); complete and free them before",
        f"this job has PEs 0 to {int(words.split()[1]) - 1}",
    ):
        assert any(part in reason for reason in reasons), part
    outcome.stderr = ""
    expect_all_right(outcome, num_ranks)


@pytest.mark.parametrize(
    ("words", "num_ranks"),
    [("-n 2 --ranks 5", 5), ("-n 3 --ranks 12", 12), ("-n 2 --ranks 16 --rank-map round-robin", 16)],
)
def test_objects_of_mpi_move(moves, words, num_ranks):
    expect_all_right(moves("moved_objects.c", words), num_ranks)


@pytest.mark.parametrize(("words", "num_ranks"), [("-n 2 --ranks 4", 4), ("-n 3 --ranks 7 --check", 7)])
def test_freed_keys_that_are_in_use_move(moves, words, num_ranks):
    expect_all_right(moves("moved_keys.c", words), num_ranks)


def test_one_rank_moves_among_many(moves):
    expect_all_right(moves("moves.c", "-n 2 --ranks 256", 3), 256)


def test_a_rank_that_cannot_move_says_why(moves):
    outcome = moves("moves.cpp", "-n 2 --ranks 6", "fatal")
    assert outcome.returncode != 0
    assert (
        "Weft_migrate on MPI_COMM_WORLD: rank 1 cannot move: it has requests of MPI (1); complete and free"
        in outcome.stderr
    )


def lines_of_ranks(outcome: subprocess.CompletedProcess[str]) -> list[str]:
    assert outcome.returncode == 0, outcome.stderr
    return sorted(outcome.stdout.splitlines())


@pytest.mark.parametrize(
    "what", ["attributes", "buffer", "setbuf", "setbuffer", "hints", "type-name", "booleans"]
)
def test_state_that_moves(moves, what):
    outcome = moves("moved_state.c", "-n 2 --ranks 5", what)
    assert outcome.stderr == ""
    assert lines_of_ranks(outcome) == [f"rank {rank}: moved" for rank in range(5)]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("stream", "MPI_COMM_SELF names a stream of a device (weft_stream); set the hint to 0 before"),
        ("queue", "it has streams (MPIX_Stream) of MPI (1); free them and their communicators before"),
        ("bsend", "MPI_COMM_SELF has a buffer of MPI_Comm_attach_buffer; detach it before"),
        ("signal", "its function handles signal 10 (User defined signal 1)"),
    ],
)
def test_state_that_would_be_lost(moves, what, reason):
    outcome = moves("moved_state.c", "-n 2 --ranks 5", what)
    assert f"weft: Weft_migrate: rank 4 cannot move: {reason}" in re.sub(r"rank \d", "rank 4", outcome.stderr)
    assert lines_of_ranks(outcome) == [f"rank {rank}: refused" for rank in range(5)]


def test_a_locale_of_a_rank(moves):
    outcome = moves("moved_locale.cpp", "-n 2 --ranks 4", options=("-fPIC",))
    assert "rank 0 cannot move: std::locale::global() has set its locale" in outcome.stderr
    assert lines_of_ranks(outcome) == [f"rank {rank}: refused, then moved" for rank in range(4)]


def test_every_strategy_leaves_a_rank_on_each_pe(moves):
    outcome = moves("balance.c", "-n 4 --ranks 5 --lb random", "random")
    assert outcome.stderr == ""
    assert lines_of_ranks(outcome) == [f"rank {rank}: 0 failures" for rank in range(5)]


def test_the_environment_of_a_rank_does_not_decide(moves):
    outcome = moves("balance.c", "-n 2 --ranks 4 --lb greedy", "clear")
    assert outcome.stderr == ""
    assert lines_of_ranks(outcome) == [f"rank {rank}: 0 failures" for rank in range(4)]


def test_what_a_rank_has_computed_since_its_last_wait_counts(moves, monkeypatch):
    monkeypatch.setenv("WEFT_LB_VERBOSE", "1")
    outcome = moves("balance.c", "-n 2 --ranks 4 --lb greedy", "last")
    assert lines_of_ranks(outcome) == [f"rank {rank}: 0 failures" for rank in range(4)]
    imbalance = re.search(r"imbalance ([\d.]+) before", outcome.stderr)
    assert imbalance is not None, outcome.stderr
    assert float(imbalance[1]) > 0.4  # 0.1 s on one PE, 0.6 s on the other; 0 without the last 0.5 s


def test_with_one_rank_per_process_no_rank_moves(moves):
    outcome = moves("moves.cpp", "-n 2", "fatal")
    assert outcome.returncode != 0
    assert "each PE has one rank; start the program with `weft run --ranks` or `weft ranks`" in outcome.stderr
