"""Messages, communicators, and how a job of MPI ends: programs in C on several PEs."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("num_pes", [None, 1, 2, 3, 4])
def test_messages_of_all_modes_and_sizes_arrive(run_mpi, num_pes):
    done = run_mpi("messages", num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"messages of {num_pes or 1} ranks: as expected\n"


def test_messages_that_wait_for_a_receive_take_bounded_memory(run_mpi):
    done = run_mpi("flood", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the receiver grew by less than 400 MiB\n"


def test_sessions_alone_start_and_end_a_job(run_mpi):
    done = run_mpi("session", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 processes in mpi://WORLD\n"


def test_abort_ends_the_job_with_its_code_and_a_sentence(run_mpi):
    done = run_mpi("endings", 2, "abort")
    assert done.returncode == 42
    assert "rank 1 called MPI_Abort with code 42" in done.stderr


def test_a_rank_that_exits_without_finalize_ends_the_job(run_mpi):
    done = run_mpi("endings", 2, "exit")
    assert done.returncode != 0
    assert "PE 1" in done.stderr


def test_a_truncated_message_is_fatal_by_default(run_mpi):
    done = run_mpi("endings", 2, "truncate")
    assert done.returncode != 0
    assert "MPI_Recv" in done.stderr
    assert "larger than the receive buffer of 2 bytes" in done.stderr


@pytest.mark.parametrize("num_pes", [None, 2, 4])
def test_partitioned_messages(run_mpi, num_pes):
    result = run_mpi("partitioned", num_pes)
    assert result.stderr == ""
    assert result.stdout == f"partitioned messages of {num_pes or 1} ranks: as expected\n"
    assert result.returncode == 0


def test_partitioned_messages_between_ranks_of_a_process(compile_program, run_ranks):
    done = run_ranks(2, 5, compile_program("../partitioned.c"))
    assert (done.stdout, done.stderr) == ("partitioned messages of 5 ranks: as expected\n", "")
    assert done.returncode == 0
