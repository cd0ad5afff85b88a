"""Signals to `weft run` reach the PEs; a second one kills."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import HANG_S

PROGRAM = """\
import os, signal, sys
def say(line):  # in one write, so that the lines of several PEs do not mix
    os.write(1, (line + "\\n").encode())
numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
for number in numbers:
    signal.signal(number, lambda *_: None)  # SIGUSR1 is passed on to PEs that handle it
# One that comes between two waits is not lost.
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
say(f"ready {os.environ['WEFT_PE']} {os.getpid()}")
while True:
    say(f"got {signal.Signals(signal.sigwait(numbers)).name}")
    if sys.argv[1] == "leave":
        os._exit(int(sys.argv[2]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_passed_on_to_every_pe(start, program: Path, number: signal.Signals) -> None:
    job = start("-n", 3, program, "leave", "0")
    job.wait_ready(3)
    job.process.send_signal(number)
    outcome = job.wait()
    assert outcome.stdout == f"got {number.name}\n" * 3
    assert outcome.stderr == f"weft run: {number.name} is passed on to the PEs; a second one kills the job\n"
    assert outcome.exit_code == 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals_are_passed_on(start, program: Path, number: signal.Signals) -> None:
    job = start("-n", 2, program, "leave", "0")
    job.wait_ready(2)
    job.process.send_signal(number)
    outcome = job.wait()
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == (f"got {number.name}\n" * 2, "", 0)


def test_default_action_ends_the_job(start, probe: Path) -> None:
    job = start("-n", 3, probe, 1, "*:finish:ready", "*:finish:idle")
    job.wait_ready(3)
    job.process.send_signal(signal.SIGINT)
    outcome = job.wait()
    assert outcome.exit_code == 128 + signal.SIGINT
    assert outcome.stderr.splitlines()[1].startswith("weft run: interrupted by signal 2 (SIGINT)")


def test_a_second_signal_kills(start, program: Path) -> None:
    job = start("-n", 3, program, "stay", "0")
    job.wait_ready(3)
    job.process.send_signal(signal.SIGINT)
    assert [job.process.stdout.readline() for _ in range(3)] == ["got SIGINT\n"] * 3
    # What follows at once counts as the same one.
    ended = False
    while not ended:
        job.process.send_signal(signal.SIGINT)
        try:
            job.process.wait(0.05)
            ended = True
        except subprocess.TimeoutExpired:
            pass
    outcome = job.wait()
    assert outcome.stderr.endswith("weft run: second signal (SIGINT); killing the job\n")
    assert outcome.exit_code == 128 + signal.SIGINT


def test_stopping_and_going_on(start, program: Path) -> None:
    job = start("-n", 2, program, "leave", "0")
    job.wait_ready(2)
    job.process.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(job.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    deadline_s = time.monotonic() + HANG_S
    while any(_state_of(pid) != "T" for pid in job.pids.values()):
        assert time.monotonic() < deadline_s, "the PEs are not stopped"
    job.process.send_signal(signal.SIGCONT)
    job.process.send_signal(signal.SIGUSR1)
    assert job.wait().stdout == "got SIGUSR1\n" * 2


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_job_that_ignores_hangups_goes_on(start, program: Path) -> None:
    job = start(
        "-n", 1, program, "leave", "5", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    job.wait_ready(1)
    job.process.send_signal(signal.SIGHUP)
    job.process.send_signal(signal.SIGUSR1)
    outcome = job.wait()
    assert outcome.stdout == "got SIGUSR1\n"
    assert outcome.exit_code == 5


def test_the_pes_start_with_default_signals(run) -> None:
    outcome = run("-n", 1, "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    lines = dict(line.split(":\t") for line in outcome.stdout.splitlines())
    own = subprocess.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], capture_output=True, text=True)
    assert lines == dict(line.split(":\t") for line in own.stdout.splitlines())


def test_a_signal_to_the_whole_group_counts_once(start, program: Path) -> None:
    job = start("-n", 2, program, "leave", "6", start_new_session=True)
    job.wait_ready(2)
    job.process.send_signal(signal.SIGTERM)
    os.killpg(job.process.pid, signal.SIGTERM)
    outcome = job.wait()
    assert "second signal" not in outcome.stderr
    assert outcome.exit_code == 6
