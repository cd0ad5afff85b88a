"""`weft run --ranks`: how ranks and their job end, and failures of the start."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

HANG_S = 150

if not (package_folder() / "lib" / virtual_ranks.HOST).exists():
    pytest.skip("THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found", allow_module_level=True)


def ends_of(outcome: subprocess.CompletedProcess[str], rank: int) -> list[str]:
    prefix = f"rank {rank}: "
    lines = outcome.stdout.splitlines()
    return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]


ALL_ENDS = ["second handler", "first handler", "destructor"]


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("way", ["return", "exit"])
@pytest.mark.parametrize("chosen", [0, 3])
def test_a_rank_ends_alone(compile_program, run_ranks, num_pes, way, chosen):
    outcome = run_ranks(num_pes, 4, compile_program("ending.c"), way, chosen, 7)
    assert outcome.returncode == 7
    for rank in range(4):
        assert ends_of(outcome, rank) == ALL_ENDS


def test_underscore_exit_runs_no_handlers(compile_program, run_ranks):
    outcome = run_ranks(1, 3, compile_program("ending.c"), "_exit", 1, 9)
    assert outcome.returncode == 9
    assert [ends_of(outcome, rank) for rank in range(3)] == [ALL_ENDS, [], ALL_ENDS]


def test_quick_exit_runs_its_own_handlers(compile_program, run_ranks):
    outcome = run_ranks(1, 3, compile_program("ending.c"), "quick_exit", 1, 9)
    assert outcome.returncode == 9
    assert [ends_of(outcome, rank) for rank in range(3)] == [ALL_ENDS, ["quick handler"], ALL_ENDS]


def test_an_exit_code_has_eight_bits(compile_program, run_ranks):
    assert run_ranks(1, 2, compile_program("ending.c"), "exit", 1, 256 + 4).returncode == 4


def test_a_program_without_mpi_init(compile_program, run_ranks):
    outcome = run_ranks(1, 2, compile_program("ending.c"), "no-init", 0, 5)
    assert ends_of(outcome, 0) == [*ALL_ENDS, *ALL_ENDS]
    assert outcome.returncode == 5


def test_the_first_failure_of_the_start_ends_the_process(compile_program, run_ranks):
    """Its other ranks do not try again, which would say that the launch is used up."""
    outcome = run_ranks(1, 4, compile_program("places.c"), options=["--lb", "unknown"])
    assert outcome.returncode == 1
    assert [line.split(":")[0] for line in outcome.stderr.splitlines()] == ["weft", "weft run"], (
        outcome.stderr
    )
    assert "WEFT_LB is 'unknown'" in outcome.stderr


def test_the_ranks_of_one_pe_never_start_mpi(compile_program, run_ranks):
    outcome = run_ranks(2, 4, compile_program("ending.c"), "no-init-on-0")
    assert "PE 1 starts a job, and PE 0 has ended without it" in outcome.stderr
    assert outcome.returncode != 0
    # A failure ends the job at once.
    outcome = run_ranks(2, 4, compile_program("ending.c"), "no-init-on-0", 0, 3)
    assert re.fullmatch(r"weft run: PE 0 \(pid \d+\) exited with code 3(; ending the job)?\n", outcome.stderr)
    assert outcome.returncode == 3


def test_weft_ranks_says_which_program_is_missing(tmp_path):
    """By weft-mpi-host, which has joined the other processes: the program may be missing on one host."""
    words = [sys.executable, "-m", "weft", "ranks", "2", str(tmp_path / "missing")]
    outcome = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert outcome.stderr == f"weft: {tmp_path}/missing: cannot be read: No such file or directory\n"
    assert outcome.returncode == 2


def test_mpi_abort_ends_the_job(compile_program, run_ranks):
    outcome = run_ranks(2, 6, compile_program("ending.c"), "abort-job", 4, 3)
    assert outcome.returncode == 3
    assert "rank 4 called MPI_Abort with code 3" in outcome.stderr


def test_sessions_start_and_end_the_job_of_all_ranks(mpi_program, run_ranks):
    outcome = run_ranks(2, 6, mpi_program("session"))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "6 processes in mpi://WORLD\n"


def test_a_rank_that_exits_without_finalize_ends_the_job(mpi_program, run_ranks):
    outcome = run_ranks(1, 2, mpi_program("endings"), "exit")  # a program for two ranks
    assert outcome.returncode != 0
    assert "rank 1 ended with code" in outcome.stderr
