"""Programs whose threads call MPI at the same time (tests/mpi/threads)."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("num_pes", [None, 2, 4])
@pytest.mark.parametrize("program", ["messages", "calls"])
def test_threads_call_mpi_at_the_same_time(run_mpi, program: str, num_pes: int | None) -> None:
    done = run_mpi(f"threads/{program}", num_pes)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{program} of threads: as expected\n"


@pytest.mark.parametrize("num_pes", [None, 2])
@pytest.mark.parametrize(
    ("wanted", "granted"),
    [(-1, "serialized"), (0, "serialized"), (1, "serialized"), (2, "serialized"), (3, "multiple")],
)
def test_programs_get_the_level_that_they_ask_for(
    run_mpi, num_pes: int | None, wanted: int, granted: str
) -> None:
    done = run_mpi("threads/levels", num_pes, wanted)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{granted}\n"


@pytest.mark.parametrize("num_pes", [None, 2])
def test_the_main_thread_is_the_one_that_calls_mpi_init(run_mpi, num_pes: int | None) -> None:
    done = run_mpi("threads/levels", num_pes, 1, "session")  # another thread has opened a session before
    assert done.returncode == 0, done.stderr
    assert done.stdout == "multiple\n"


@pytest.mark.parametrize("num_pes", [None, 2])
def test_a_session_raises_the_level_of_a_program_that_runs(run_mpi, num_pes: int | None) -> None:
    done = run_mpi("threads/levels", num_pes, 1, "later")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "multiple\n"
