"""Ranks that are lost: `weft run --on-loss raise`, and the functions of <mpi-ext.h>."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HANG_S = 150
RunLosing = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_losing(mpi_program: Callable[[str], Path], tmp_path: Path) -> RunLosing:
    """run_losing("calls", 4, 2) runs losses/calls.c with the argument 2 on 4 PEs, which may be lost."""

    def run(
        name: str, num_pes: int, *arguments: object, options: tuple[str, ...] = ("--on-loss", "raise")
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), *options]
        return subprocess.run(
            [*command, str(mpi_program(f"losses/{name}")), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            cwd=tmp_path,
            env=os.environ,
        )

    return run


def expect_done(ended: subprocess.CompletedProcess[str], ranks: list[int]) -> None:
    """Those ranks have ended well, and no others."""
    done = sorted(ended.stdout.splitlines())
    assert done == [f"rank {rank} is done" for rank in ranks], f"{ended.stdout}\n{ended.stderr}"
    assert "weft: rank" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("victim", [0, 1, 3])
def test_calls_fail_that_need_the_lost_rank(run_losing: RunLosing, victim: int) -> None:
    expect_done(run_losing("calls", 4, victim), [rank for rank in range(4) if rank != victim])


def test_a_revocation_ends_what_is_pending(run_losing: RunLosing) -> None:
    expect_done(run_losing("revoke", 4, "all"), [0, 1, 2, 3])


def test_a_revocation_reaches_all_if_its_rank_is_lost(run_losing: RunLosing) -> None:
    expect_done(run_losing("revoke", 4, "revoker"), [1, 2, 3])


def test_revocation_works_without_losses(run_losing: RunLosing) -> None:
    expect_done(run_losing("revoke", 3, "all", options=()), [0, 1, 2])


@pytest.mark.parametrize(("num_losses", "living"), [(1, [1, 2, 3, 4]), (3, [2, 3])])
def test_collectives_end_and_the_living_go_on(
    run_losing: RunLosing, num_losses: int, living: list[int]
) -> None:
    expect_done(run_losing("rounds", 5, num_losses), living)


@pytest.mark.parametrize(
    ("how", "living"), [("unnoticed", [0, 2]), ("first", [1, 2]), ("late", [0, 2]), ("two", [2])]
)
def test_finalize_does_not_wait_for_lost_ranks(run_losing: RunLosing, how: str, living: list[int]) -> None:
    expect_done(run_losing("ends", 3, how), living)


def test_finalize_works_if_the_world_is_revoked(run_losing: RunLosing) -> None:
    expect_done(run_losing("ends", 3, "revoked", options=()), [0, 1, 2])


def test_a_fatal_error_handler_ends_the_job(run_losing: RunLosing) -> None:
    ended = run_losing("ends", 3, "fatal")
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "MPIX_ERR_PROC_FAILED" in ended.stderr and "MPI_ERRORS_ARE_FATAL" in ended.stderr


def test_ranks_that_share_processes_are_refused(run_losing: RunLosing) -> None:
    ended = run_losing("ends", 2, "unnoticed", options=("--on-loss", "raise", "--ranks", "4"))
    assert ended.returncode != 0
    assert "--on-loss raise needs a process for each rank" in ended.stderr
