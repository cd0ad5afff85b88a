"""Forked children of ranks never act for their parents."""

from __future__ import annotations

import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

# The child's exit code; one that calls MPI, which has ended there, is ended by the error handler.
WAYS = {"exit": 7, "return": 7, "abort": 7, "call": 1, "closed": 7, "open": 7}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("num_pes", [None, 2])
def test_the_job_does_not_notice_a_forked_child(run_mpi, num_pes: int | None, how: str) -> None:
    done = run_mpi("forks", num_pes, how)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (num_pes or 1) * f"sum {(num_pes or 1) - 1}, child {WAYS[how]}\n"
    if how == "call":
        assert done.stderr.count("MPI has not been started, or has ended") == (num_pes or 1)
    elif how != "abort":
        assert done.stderr == ""


@pytest.mark.skipif(
    not (package_folder() / "lib" / virtual_ranks.HOST).exists(),
    reason="THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found",
)
@pytest.mark.parametrize("how", WAYS)
def test_the_job_does_not_notice_a_forked_child_of_a_virtual_rank(run_ranks, mpi_program, how: str) -> None:
    done = run_ranks(2, 4, mpi_program("forks"), how)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == 4 * [f"sum 6, child {WAYS[how]}"]
