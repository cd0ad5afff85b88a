"""Programs of MPI: what a report says of wrong ones, and that right ones are not reported."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

CYCLE = "rank 0 waits for rank 1, and rank 1 for rank 0"
WRONG = {
    "forgotten_send": [
        "rank 0: MPI_Recv (",
        "receive from rank 1, tag 7, on MPI_COMM_WORLD",
        "rank 1: MPI_Finalize",
    ],
    "crossed_receives": [CYCLE, "receive from rank 1, tag 0, on MPI_COMM_WORLD"],
    "crossed_large_sends": [CYCLE, "MPI_Send (", "send of 1048576 bytes to rank 0, tag 0, on MPI_COMM_WORLD"],
    "wrong_tag": ["tag 7, on MPI_COMM_WORLD; what has come: tag 8 from rank 1 on MPI_COMM_WORLD"],
    "wrong_communicator": ["tag 7, on mine; what has come: tag 7 from rank 1 on MPI_COMM_WORLD"],
    "synchronous_send": ["rank 0: MPI_Ssend (", "rank 1: MPI_Finalize"],
    "barrier_of_some": [
        CYCLE,
        "rank 0: MPI_Barrier (",
        "barrier on MPI_COMM_WORLD, in which rank 1",
    ],
    "broadcast_without_root": [CYCLE, "rank 1: MPI_Bcast ("],
    "forgotten_nonblocking": ["rank 0: MPI_Waitall (", "receive from rank 1, tag 1", "and 1 like it"],
    "probe_for_nothing": ["rank 0: MPI_Probe (", "waits in this call"],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_named(run_hanging: Run, ranks: Path, name: str) -> None:
    job = run_hanging(2, "0.3,end", ranks, name)
    assert job.returncode == 1, job.stderr
    assert "weft: the program hangs: its 2 PEs have been idle for " in job.stderr
    for text in WRONG[name]:
        assert text in job.stderr


def test_ranks_of_one_process_are_named(run_hanging: Run, ranks: Path) -> None:
    job = run_hanging(2, "0.3,end", ranks, "ring", options=("--ranks", "4"))
    assert job.returncode == 1, job.stderr
    cycle = "rank 0 waits for rank 3, rank 3 for rank 2, rank 2 for rank 1, and rank 1 for rank 0"
    assert f"cause: {cycle}" in job.stderr


def test_a_right_program_is_not_reported(run_hanging: Run, ranks: Path) -> None:
    job = run_hanging(2, "0.3", ranks, "late")
    assert job.returncode == 0
    assert job.stderr == ""


def test_a_program_that_waits_for_another_job_is_not_reported(run_hanging: Run, ranks: Path) -> None:
    job = run_hanging(2, "0.3", ranks, "accept_nobody", options=("--timeout", "3"))
    assert job.returncode == 124
    assert "hangs" not in job.stderr
