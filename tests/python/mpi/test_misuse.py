"""Programs that call MPI wrongly get an error, or a sentence, and no crash."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("num_pes", [None, 1, 3, 4])
def test_wrong_arguments_are_errors(run_mpi, num_pes):
    done = run_mpi("misuse", num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == f"misuse on {num_pes or 1} ranks: as expected\n"


# Eight processes move small parts in another way.
@pytest.mark.parametrize(("num_pes", "sizes"), [(1, "all"), (2, "all"), (3, "all"), (4, "all"), (8, "small")])
def test_wrong_counts_in_a_collective_let_all_processes_return(run_mpi, num_pes, sizes):
    done = run_mpi("wrong_counts", num_pes, sizes)
    assert done.stderr == ""
    assert done.stdout == f"wrong counts on {num_pes} ranks: all returned\n"
    assert done.returncode == 0


@pytest.mark.parametrize("num_pes", [None, 1, 2, 4])
def test_sentinels_and_overlapping_buffers_are_refused(run_mpi, num_pes):
    done = run_mpi("sentinels", num_pes)
    assert done.stderr == ""
    assert done.stdout == f"sentinels on {num_pes or 1} ranks: as expected\n"
    assert done.returncode == 0


@pytest.mark.parametrize("num_pes", [2, 5])
def test_operators_that_differ_are_errors_in_check_mode(run_mpi, num_pes, monkeypatch):
    monkeypatch.setenv("WEFT_CHECK", "1")
    done = run_mpi("operators", num_pes)
    assert done.stderr == ""
    assert done.stdout == f"operators on {num_pes} ranks: as expected\n"
    assert done.returncode == 0


def test_the_sentence_names_both_operators(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_CHECK", "1")
    done = run_mpi("operators", 2, "fatal")
    assert done.returncode != 0
    assert "rank 1 calls MPI_Allreduce with MPI_MAX, and rank 0 MPI_Allreduce with MPI_SUM" in done.stderr


def test_a_wait_after_the_end_of_mpi_says_so(run_mpi):
    done = run_mpi("endings", 2, "late")
    assert done.returncode == 1
    assert "MPI_Wait" in done.stderr
    assert "call it between MPI_Init and MPI_Finalize" in done.stderr


@pytest.mark.parametrize("num_pes", [None, 2])
def test_buffered_sends_use_the_buffer_of_their_session(run_mpi, num_pes):
    done = run_mpi("session_buffer", num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"buffers of sessions on {num_pes or 1} ranks: as expected\n"


@pytest.mark.parametrize("num_pes", [None, 2])
def test_a_call_uses_the_error_handler_that_it_is_given(run_mpi, num_pes):
    done = run_mpi("given_handlers", num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (num_pes or 1) * "handlers that calls are given: as expected\n"


def test_a_start_that_fails_uses_it_too(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_BOOTSTRAP", "no-such-way")
    done = run_mpi("given_handlers", None, "no-start")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the start fails: as expected\n"


def test_a_handler_of_another_kind_is_refused(run_mpi):
    done = run_mpi("given_handlers", None, "other-kind")
    assert done.returncode != 0
    assert "the error handler was made for another kind of object than a session" in done.stderr


@pytest.mark.parametrize("layout", ["dense", "gap"])
def test_a_message_far_too_large_for_its_receive_takes_no_memory(run_mpi, layout):
    done = run_mpi("too_large", 2, layout)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "MPI_ERR_TRUNCATE, 8 bytes, then 5\n"
