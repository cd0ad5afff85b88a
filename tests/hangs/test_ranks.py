"""Programs of MPI: what a report says of wrong ones, and that right ones are not reported."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

CYCLE = "cause: rank 0 waits for rank 1, and rank 1 for rank 0"
ENDS = "rank 1: MPI_Finalize ("
# On two ranks, if there is no number: texts of the report.
WRONG: dict[str, list[str]] = {
    "forgotten_send": [CYCLE, "MPI_Recv (", "receive from rank 1, tag 7, on MPI_COMM_WORLD", ENDS],
    "crossed_receives": [CYCLE, "receive from rank 1, tag 0, on MPI_COMM_WORLD"],
    "crossed_large_sends": [CYCLE, "MPI_Send (", "send of 1048576 bytes to rank 0, tag 0, on MPI_COMM_WORLD"],
    "wrong_tag": ["tag 7, on MPI_COMM_WORLD; what has come: tag 8 from rank 1 on MPI_COMM_WORLD"],
    "wrong_communicator": ["tag 7, on mine; what has come: tag 7 from rank 1 on MPI_COMM_WORLD"],
    "synchronous_send": [CYCLE, "rank 0: MPI_Ssend (", "send of 4 bytes to rank 1, tag 3", ENDS],
    "barrier_of_some": [CYCLE, "rank 0: MPI_Barrier (", "barrier on MPI_COMM_WORLD, in which rank 1"],
    "broadcast_without_root": [CYCLE, "rank 1: MPI_Bcast ("],
    "forgotten_nonblocking": [CYCLE, "MPI_Waitall (", "receive from rank 1, tag 1", "and 1 like it"],
    "probe_for_nothing": [CYCLE, "MPI_Probe (", "probe for a message from rank 1, tag 5, on MPI_COMM_WORLD"],
    "matched_probe": [CYCLE, "rank 0: MPI_Mprobe (", "tag 5, on MPI_COMM_WORLD; what has come: tag 6"],
    "persistent_not_started": [CYCLE, "rank 0: MPI_Wait (", "receive from rank 1, tag 4", ENDS],
    "partition_not_ready": ["rank 0: MPI_Wait (", "rank 1: MPI_Wait (", "receive from rank 1, tag 2"],
    "partitioned_alone": [CYCLE, "rank 0: MPI_Wait (", ENDS],
    "wait_for_any": [CYCLE, "rank 0: MPI_Waitany (", "what has come: tag 9 from rank 1"],
    "other_order_of_communicators": [CYCLE, "rank 0: MPI_Barrier (", "barrier on first, in which rank 1"],
    "nonblocking_barrier_of_some": [
        CYCLE,
        "rank 0: MPI_Wait (",
        "barrier on MPI_COMM_WORLD, in which rank 1",
    ],
    "reduce_to_other_roots": [CYCLE, "rank 0: MPI_Reduce (", "in which rank 1", "and 1 like it"],
    "allgather_of_some": [CYCLE, "rank 0: MPI_Allgather (", "rank 1: MPI_Recv ("],
    "duplicate_of_some": [CYCLE, "rank 0: MPI_Comm_dup (", ENDS],
    "split_of_some": [CYCLE, "rank 0: MPI_Comm_split (", ENDS],
    "create_of_some": [CYCLE, "rank 1: MPI_Comm_create_group (", "rank 0: MPI_Finalize ("],
    "barrier_or_receive": [CYCLE, "rank 0: MPI_Barrier (", "rank 1: MPI_Recv ("],
    "intercommunicator_receive": [CYCLE, "rank 0: MPI_Recv (", "from rank 0, tag 2, on between", ENDS],
    "intercommunicator_barrier": [CYCLE, "rank 0: MPI_Barrier (", ENDS],
    "fence_of_some": [CYCLE, "rank 0: MPI_Win_fence (", ENDS],
    "start_without_post": [CYCLE, "rank 0: MPI_Win_", ENDS],
    "wait_without_complete": [CYCLE, "rank 0: MPI_Win_wait (", ENDS],
    "locks_in_other_orders": [
        CYCLE,
        "rank 0: MPI_Win_lock (",
        "exclusive lock of rank 1 of words, which rank 1 holds, and 1 like it",
    ],
    "lock_kept_by_receiver": [CYCLE, "exclusive lock of rank 0 of words, which rank 1 holds", "tag 6"],
    "lock_of_all_kept": ["exclusive lock of rank 0 of words, which another rank shares", "MPI_Barrier ("],
    "lock_not_released": [CYCLE, "rank 0: MPI_Win_lock_all (", "shared lock of rank 1 of words", ENDS],
    "window_freed_by_some": [CYCLE, "rank 0: MPI_Win_free (", ENDS],
    "file_opened_by_some": [CYCLE, "rank 0: MPI_File_open (", ENDS],
    "file_written_by_some": [CYCLE, "rank 0: MPI_File_write_at_all (", ENDS],
    "file_in_order_of_some": [CYCLE, "rank 1: MPI_File_write_ordered (", "rank 0: MPI_Finalize ("],
}
WRONG_ON_THREE: dict[str, list[str]] = {
    "locks_in_other_orders": [
        "cause: rank 0 waits for rank 1, rank 1 for rank 2, and rank 2 for rank 0",
        "exclusive lock of rank 1 of words, which rank 1 holds, and 2 like it",
    ],
    "ring": ["cause: rank 0 waits for rank 2, rank 2 for rank 1, and rank 1 for rank 0"],
    "circle_of_synchronous_sends": [
        "cause: rank 0 waits for rank 1, rank 1 for rank 2, and rank 2 for rank 0",
        "send of 4 bytes to rank ",
    ],
    "exchange_with_wrong_neighbour": [
        "cause: rank 0 waits for rank 1, rank 1 for rank 2, and rank 2 for rank 0",
        "rank 0: MPI_Sendrecv (",
    ],
    "barrier_without_last": ["cause: rank 0 waits for rank 2, and rank 2 for rank 0", "tag 5"],
    "stolen_message": [CYCLE, "rank 0: MPI_Recv (", "receive from rank 1, tag 0", ENDS],
    "workers_without_end": [
        "cause: rank 0 waits for rank 2, and rank 2 for rank 0",
        "rank 2: MPI_Recv (",
        "receive from rank 0, any tag",
    ],
}
NUM_RIGHT = 18
# The watch looks seldom at a job that is at work, and not while rank 0, with several threads, waits for the
# lock of a window.
LEAST_LOOKED_AT = 14


def expect_report(job: subprocess.CompletedProcess[str], texts: list[str]) -> None:
    assert job.returncode == 1, job.stderr
    assert "weft: the program hangs: its " in job.stderr
    assert [text for text in texts if text not in job.stderr] == [], job.stderr


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_named(run_hanging: Run, wrong_ranks: Path, name: str) -> None:
    expect_report(run_hanging(2, "0.3,end", wrong_ranks, name), WRONG[name])


@pytest.mark.parametrize("name", WRONG_ON_THREE)
def test_a_wrong_program_of_three_ranks_is_named(run_hanging: Run, wrong_ranks: Path, name: str) -> None:
    expect_report(run_hanging(3, "0.3,end", wrong_ranks, name), WRONG_ON_THREE[name])


def test_ranks_of_one_process_are_named(run_hanging: Run, wrong_ranks: Path) -> None:
    job = run_hanging(2, "0.3,end", wrong_ranks, "ring", options=("--ranks", "4"))
    cycle = "cause: rank 0 waits for rank 3, rank 3 for rank 2, rank 2 for rank 1, and rank 1 for rank 0"
    expect_report(job, [cycle, "rank 0: MPI_Recv: receive from rank 3, tag 0", "and 3 like it"])


def test_the_receives_of_windows_are_no_waits(run_hanging: Run, wrong_ranks: Path) -> None:
    job = run_hanging(3, "0.3,end", wrong_ranks, "locks_in_other_orders")
    assert job.stderr.count("cause: ") == 1, job.stderr
    assert "receive from" not in job.stderr


def test_a_wait_for_a_lock_is_not_reported(run_hanging: Run, wrong_ranks: Path) -> None:
    job = run_hanging(2, "0.3", wrong_ranks, "lock_released_late")
    assert job.stderr == ""
    assert job.returncode == 0


def test_right_programs_are_not_reported(run_hanging: Run, right_ranks: Path) -> None:
    """They wait so long that the watch looks at each of them, or once more if PEs waited for their cores."""
    looked_at: set[str] = set()
    for _ in range(3):
        job = run_hanging(2, "0.3", right_ranks, "1300000")
        looks = {name: int(number) for name, number in (line.split() for line in job.stdout.splitlines())}
        assert job.stderr == ""
        assert job.returncode == 0
        assert len(looks) == NUM_RIGHT
        looked_at |= {name for name, number in looks.items() if number > 0}
        if len(looked_at) >= LEAST_LOOKED_AT:
            break
    assert len(looked_at) >= LEAST_LOOKED_AT, looked_at


def test_a_program_that_waits_for_another_job_is_not_reported(run_hanging: Run, right_ranks: Path) -> None:
    job = run_hanging(2, "0.3", right_ranks, "accept_nobody", options=("--timeout", "3"))
    assert job.returncode == 124
    assert "hangs" not in job.stderr
