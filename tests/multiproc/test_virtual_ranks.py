"""Several MPI ranks in each of several processes: the programs of tests/unit/mpi_abi/rank_programs.h."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAMS = [
    "knows_its_number",
    "passes_messages",
    "keeps_order",
    "polls",
    "combines",
    "makes_communicators",
    "catches_exceptions",
    "uses_sessions",
    "exits_early",
    "uses_no_mpi",
]


@pytest.fixture
def probe(build_folder: Path, run):
    def start(num_pes: int, *arguments: object):
        outcome = run("-n", num_pes, build_folder / "tests" / "multiproc" / "virtual_ranks_probe", *arguments)
        if outcome.exit_code == 77:
            pytest.skip("NOT TESTED: this build has no virtual ranks, because Boost.Context was not found")
        return outcome

    return start


@pytest.mark.parametrize("placement", ["block", "round-robin"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run_as_ranks_of_two_processes(probe, program: str, placement: str) -> None:
    outcome = probe(2, program, 9, placement)
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


def test_three_processes(probe) -> None:
    outcome = probe(3, "combines", 16, "round-robin")
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


def test_128_ranks_on_each_of_two_processes(probe) -> None:
    outcome = probe(2, "combines", 256, "block")
    assert outcome.stderr == ""
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    ("program", "exit_code", "sentence"),
    [
        ("fails_at_rank_2", 7, ""),
        ("forgets_to_finalize", 3, "rank 1 ended with code 3 before it called MPI_Finalize"),
        ("never_starts_mpi", 1, "rank 1 ended with code 0 and had not called MPI_Init"),
        ("aborts", 5, "rank 1 called MPI_Abort with code 5"),
    ],
)
def test_ends_that_are_not_good(probe, program: str, exit_code: int, sentence: str) -> None:
    outcome = probe(2, program, 8, "block")
    assert sentence in outcome.stderr
    assert outcome.exit_code == exit_code
