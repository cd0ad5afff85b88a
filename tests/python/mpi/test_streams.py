"""Messages and collectives that are queued on streams: of emulated devices, and of GPUs if there are some."""

from __future__ import annotations

import pytest

PROGRAM = "streams/messages"
COLLECTIVES = "streams/collectives"


def expect_all_right(done, num_ranks: int, kind: str = "emulated", what: str = "messages") -> None:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == f"{what} on streams of {num_ranks} ranks in {kind} memory: as expected\n"


def expect_collectives(done, num_ranks: int, kind: str = "emulated") -> None:
    expect_all_right(done, num_ranks, kind, "collectives")


@pytest.mark.parametrize("num_pes", [None, 1, 2, 3])
def test_messages_on_emulated_streams(run_mpi, num_pes):
    expect_all_right(run_mpi(PROGRAM, num_pes, "emulated"), num_pes or 1)


def test_slow_devices(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_EMULATED_FAULTS", "polls=7")
    expect_all_right(run_mpi(PROGRAM, 2, "emulated"), 2)
    expect_collectives(run_mpi(COLLECTIVES, 2, "emulated"), 2)


@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 3), (2, 5)])
def test_several_ranks_on_a_pe(mpi_program, run_ranks, num_pes, num_ranks):
    done = run_ranks(num_pes, num_ranks, mpi_program(PROGRAM), "emulated")
    expect_all_right(done, num_ranks)


@pytest.mark.gpu
@pytest.mark.parametrize("num_pes", [1, 2])
def test_messages_on_cuda_streams(need_gpus, run_mpi, num_pes):
    need_gpus(num_pes)
    expect_all_right(run_mpi(PROGRAM, num_pes, "cuda"), num_pes, "cuda")


# --- Errors and ends of the job


@pytest.mark.parametrize("num_pes", [None, 1, 3])
def test_wrong_arguments_are_errors(run_mpi, num_pes):
    done = run_mpi("streams/misuse", num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == f"misuse of streams on {num_pes or 1} ranks: as expected\n"


@pytest.mark.parametrize(
    ("what", "labels"),
    [
        ("other_tag", "the label 0x600000020 and finds 0x700000020"),
        ("other_size", "the label 0x700000020 and finds 0x700000010"),
        ("unnoticed", "the label 0x600000020 and finds 0x700000020"),
    ],
)
def test_messages_that_do_not_match_end_the_job_in_words(run_mpi, what, labels):
    done = run_mpi(PROGRAM, 2, "emulated", what)
    assert done.returncode != 0
    assert f"a receive expects a message with {labels}" in done.stderr
    assert "the label of a message is (tag + 1) * 2^32 + its number of bytes" in done.stderr


def test_a_communicator_whose_stream_has_failed_is_freed(run_mpi):
    expect_all_right(run_mpi(PROGRAM, 2, "emulated", "free_fails"), 2)


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_communicators_that_are_not_freed(run_mpi, num_pes):
    expect_all_right(run_mpi(PROGRAM, num_pes, "emulated", "forgotten"), num_pes)


def test_a_device_that_does_not_reach_a_peer_is_an_error_of_all(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", "off")
    done = run_mpi("streams/misuse", 2, "unreachable")
    assert done.returncode != 0
    assert "does not reach" in done.stderr
    assert "(MPI_ERR_UNSUPPORTED_OPERATION)" in done.stderr


def test_a_rank_that_dies_while_a_stream_waits(run_mpi):
    done = run_mpi(PROGRAM, 2, "emulated", "dies")
    assert done.returncode != 0
    assert "PE 1" in done.stderr
    assert "was killed by signal 9" in done.stderr


def test_an_abort_while_a_stream_waits(run_mpi):
    done = run_mpi(PROGRAM, 2, "emulated", "aborts")
    assert done.returncode == 9
    assert "rank 1 called MPI_Abort with code 9" in done.stderr


def test_a_stream_that_waits_at_the_end_of_mpi(run_mpi):
    """The end waits until the devices have done nothing else for 2 s."""
    done = run_mpi(PROGRAM, 2, "emulated", "waits_at_end")
    assert done.returncode == 0
    assert "PE 0: a stream waits for a signal that no PE sends" in done.stderr


# --- Collectives


@pytest.mark.parametrize("num_pes", [None, 1, 2, 3])
def test_collectives_on_emulated_streams(run_mpi, num_pes):
    expect_collectives(run_mpi(COLLECTIVES, num_pes, "emulated"), num_pes or 1)


@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 2), (2, 3)])
def test_collectives_of_several_ranks_on_a_pe(mpi_program, run_ranks, num_pes, num_ranks):
    done = run_ranks(num_pes, num_ranks, mpi_program(COLLECTIVES), "emulated")
    expect_collectives(done, num_ranks)


@pytest.mark.gpu
@pytest.mark.parametrize("num_pes", [1, 2])
def test_collectives_on_cuda_streams(need_gpus, run_mpi, num_pes):
    need_gpus(num_pes)
    expect_collectives(run_mpi(COLLECTIVES, num_pes, "cuda"), num_pes, "cuda")


@pytest.mark.parametrize("num_pes", [None, 3])
def test_wrong_arguments_of_collectives_are_errors(run_mpi, num_pes):
    expect_collectives(run_mpi(COLLECTIVES, num_pes, "emulated", "misuse"), num_pes or 1)


def test_more_ranks_than_a_group_has_have_messages_alone(mpi_program, run_ranks):
    done = run_ranks(1, 17, mpi_program(COLLECTIVES), "emulated", "without_group")
    expect_collectives(done, 17)


@pytest.mark.parametrize(("num_ranks", "what"), [(2, "shared_stream"), (1, "other_device")])
def test_streams_that_have_messages_alone(mpi_program, run_ranks, num_ranks, what):
    done = run_ranks(1, num_ranks, mpi_program(COLLECTIVES), "emulated", what)
    expect_collectives(done, num_ranks)


@pytest.mark.parametrize(
    ("num_ranks", "sentence"),
    [
        (1, "streams combine MPI_INT32_T, MPI_INT64_T, MPI_REAL2, MPI_FLOAT, MPI_DOUBLE, and types"),
        (17, "no collectives on streams: a group of device arrays has at most 16 members"),
    ],
)
def test_errors_of_collectives_say_what_there_is(mpi_program, run_ranks, num_ranks, sentence):
    done = run_ranks(1, num_ranks, mpi_program(COLLECTIVES), "emulated", "fatal")
    assert done.returncode != 0
    assert sentence in done.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_collectives_of_communicators_that_are_not_freed(run_mpi, num_pes):
    expect_collectives(run_mpi(COLLECTIVES, num_pes, "emulated", "forgotten"), num_pes)


def test_a_collective_that_waits_at_the_end_of_mpi(run_mpi):
    """As a message does."""
    done = run_mpi(COLLECTIVES, 2, "emulated", "waits_at_end")
    assert done.returncode == 0
    assert "PE 0: a stream waits for a signal that no PE sends" in done.stderr
