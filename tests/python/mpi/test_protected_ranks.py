"""Virtual ranks that outlive their processes: Weft_protect()."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

PROGRAM = Path(__file__).resolve().parents[2] / "mpi" / "virtual_ranks" / "protected.c"
HANG_S = 150
NUM_STEPS = 10
RESTART = "--on-loss restart"

if not (package_folder() / "lib" / virtual_ranks.HOST).exists():
    pytest.skip("THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found", allow_module_level=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    binary = tmp_path_factory.mktemp("protected") / "protected"
    wrapper = [sys.executable, "-m", "weft", "mpicc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run([*wrapper, str(PROGRAM), "-o", str(binary)], check=True, timeout=HANG_S)
    return str(binary)


def command(words: str, program: str, arguments: str) -> list[str]:
    return [sys.executable, "-m", "weft", "run", *words.split(), program, *arguments.split()]


def run(words: str, program: str, arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(words, program, arguments), capture_output=True, text=True, timeout=HANG_S, check=False
    )


def results_of(ended: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return dict(line.split() for line in ended.stdout.splitlines())


@pytest.fixture(scope="module")
def undisturbed(program: str) -> dict[int, str]:
    """The bits of a job that has lost nothing, by its number of ranks."""
    ended = {ranks: run(f"-n 2 --ranks {ranks}", program, str(NUM_STEPS)) for ranks in (3, 7)}
    return {ranks: results_of(job)["bits"] for ranks, job in ended.items()}


@pytest.mark.parametrize(
    ("words", "losses", "pes"),
    [
        ("-n 3 --ranks 7", "0@4", 3),
        ("-n 3 --ranks 7", "2@9", 3),
        ("-n 3 --ranks 7 --rank-map round-robin", "1#5 0@7", 3),  # PE 0, which kept the copy of PE 2
        ("-n 3 --ranks 3", "1@5", 3),  # one rank for each PE
    ],
)
def test_ranks_go_on_with_the_same_bits(program, undisturbed, words, losses, pes):
    ended = run(f"{words} {RESTART}", program, f"{NUM_STEPS} {losses}")
    num_losses = len(losses.split())
    results = results_of(ended)
    assert results["bits"] == undisturbed[int(words.split()[3])], ended.stderr
    assert (results["recoveries"], results["arrivals"]) == (str(num_losses), str(num_losses))
    assert results["pes"] == str(pes)
    assert ended.stderr.count("the job begins again") == num_losses


@pytest.mark.parametrize("seed", [1, 2])
def test_losses_at_random_steps(program, undisturbed, seed):
    numbers = random.Random(seed)
    losses = " ".join(f"{numbers.randrange(3)}@{step}" for step in (3, numbers.randrange(4, 7), 9))
    ended = run(f"-n 3 --ranks 7 {RESTART}", program, f"{NUM_STEPS} {losses}")
    assert results_of(ended)["bits"] == undisturbed[7], f"seed {seed}: {losses}\n{ended.stderr}"
    assert results_of(ended)["recoveries"] == "3"


def test_large_messages_are_copied_by_both_processes(program):
    ended = run(f"-n 2 --ranks 4 --stats {RESTART}", program, "large")
    assert results_of(ended)["recoveries"] == "1"
    assert " shared " in ended.stderr, ended.stderr


# PE 2 has stopped, and its new program would have the same process number and addresses.
def test_a_process_that_knows_of_the_loss_late_writes_into_no_new_program(program):
    ended = run(f"-n 3 --ranks 3 {RESTART}", program, "late")
    assert results_of(ended)["recoveries"] == "1"
    assert "not true" not in ended.stderr, ended.stderr  # a process that exits then begins again, too


def has_stopped(process: str) -> bool:
    """Whether it writes the state for its new program, or has."""
    for descriptor in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "weft-protected-state" in os.readlink(f"/proc/{process}/fd/{descriptor}"):
                return True
    return False


def test_sigterm_drains_a_process_also_if_it_has_stopped(program, tmp_path):
    words = f"-n 3 --ranks 3 {RESTART} --drain-on SIGTERM --timeout {HANG_S}"
    with subprocess.Popen(
        command(words, program, f"waiting {tmp_path / 'go'}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stderr is not None
        processes: dict[str, str] = {}
        for line in job.stderr:
            if "the job begins again" in line:
                break
            if " is process " in line:
                _, pe, _, _, process = line.split()
                processes[pe] = process
        while not has_stopped(processes["2"]):
            pass
        os.kill(int(processes["2"]), signal.SIGTERM)
        (tmp_path / "go").touch()
        output, errors = job.communicate(timeout=HANG_S)
    assert (job.returncode, output.splitlines()[-1]) == (0, "pes 2"), errors
    assert "PE 2 " in errors and " got SIGTERM: it leaves at the next weft.protect" in errors


def test_a_job_goes_on_with_fewer_processes(program, undisturbed):
    ended = run("-n 3 --ranks 7 --on-loss shrink", program, f"{NUM_STEPS} 0@4 1@8")
    results = results_of(ended)
    assert results["bits"] == undisturbed[7], ended.stderr
    assert (results["recoveries"], results["pes"]) == ("2", "1")


def test_a_loss_before_anything_is_protected(program, undisturbed):
    results = results_of(run(f"-n 3 --ranks 7 {RESTART}", program, f"{NUM_STEPS} 0!"))
    assert (results["bits"], results["recoveries"]) == (undisturbed[7], "1")
    assert results["arrivals"] == "0"


def test_a_lost_state_ends_the_job_in_words(program):
    ended = run(f"-n 1 --ranks 2 {RESTART}", program, f"{NUM_STEPS} 0@4")
    assert ended.returncode == 1
    assert "weft: the MPI ranks cannot be recovered: " in ended.stderr
    assert "all PEs that kept the protected state were lost" in ended.stderr


def test_what_cannot_be_protected_is_named(program):
    ended = run(f"-n 2 --ranks 4 {RESTART}", program, "refused")
    assert (ended.returncode, ended.stdout) == (0, "refused\n"), ended.stderr
    reasons = [line.removeprefix("weft: Weft_protect: ") for line in ended.stderr.splitlines()]
    assert reasons == [
        "rank 1 cannot be protected: it has requests of MPI (1); complete and free them before",
        "rank 1 cannot be protected: 1 messages for it have not been received",
    ]


def test_other_jobs_protect_nothing(program, undisturbed):
    assert results_of(run("-n 3 --ranks 7", program, str(NUM_STEPS)))["recoveries"] == "0"
    assert results_of(run("-n 3", program, str(NUM_STEPS)))["bits"] == undisturbed[3]
    ended = run(f"-n 3 {RESTART}", program, str(NUM_STEPS))
    assert ended.returncode != 0
    assert "each PE has one rank, whose state cannot be protected" in ended.stderr


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_another_number_of_processes(program, before, after):
    words = f"-n {before} --ranks 4 {RESTART} --timeout {HANG_S}"
    with subprocess.Popen(
        command(words, program, f"until {after}"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "begun\n"
        resize = [sys.executable, "-m", "weft", "resize", str(job.pid), "-n"]
        refused = subprocess.run([*resize, "5"], capture_output=True, text=True, timeout=HANG_S, check=False)
        assert "5 PEs: the job has 4 MPI ranks, and each PE has at least one" in refused.stderr
        subprocess.run([*resize, str(after)], check=True, timeout=HANG_S)
        output, errors = job.communicate(timeout=HANG_S)
    assert (job.returncode, output) == (0, f"recoveries 1\npes {after}\n"), errors
