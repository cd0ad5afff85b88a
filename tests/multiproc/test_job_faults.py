"""Whole jobs that lose a PE or go wrong: they end everywhere, in time, and stderr says what and where."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from .conftest import END_WITHIN_S

NUM_PES = 4


@pytest.mark.parametrize("doing", ["load", "idle", "busy", "startup"])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_pe_ends_the_job(start, fault_probe: Path, doing: str, victim: int) -> None:
    job = start("-n", NUM_PES, fault_probe, doing)
    job.wait_ready(NUM_PES)
    os.kill(job.pids[victim], signal.SIGKILL)
    outcome = job.wait()
    assert outcome.seconds < END_WITHIN_S
    death = rf"weft run: PE {victim} \(pid {job.pids[victim]}\) was killed by signal 9 \(SIGKILL\)"
    assert re.search(rf"^{death}", outcome.stderr, re.MULTILINE), outcome.stderr
    assert outcome.exit_code != 0


@pytest.mark.parametrize("doing", ["load", "idle", "busy"])
def test_the_launchers_death_ends_every_pe(start, fault_probe: Path, doing: str) -> None:
    job = start("-n", NUM_PES, fault_probe, doing)
    job.wait_ready(NUM_PES)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)


@pytest.mark.parametrize("doing", ["idle", "busy"])
def test_the_launchers_death_ends_pes_behind_wrappers(start, fault_probe: Path, doing: str) -> None:
    job = start("-n", 2, "sh", "-c", f'"$0" {doing}; exit $?', fault_probe)
    job.wait_ready(2)
    job.process.kill()
    assert job.wait_gone(END_WITHIN_S)
    _, stderr = job.process.communicate()
    lost = rf"weft: PE (\d) lost `weft run` \(pid {job.process.pid}\): .* start it again"
    ended = r"weft: PE (\d) ends although it is busy: its launcher has gone or ended the job 3000 ms ago"
    # A PE that waits for its core for long may say both.
    said = {match[1] or match[2] for match in re.finditer(f"(?:{lost})|(?:{ended})", stderr)}
    assert said == {"0", "1"}, stderr


@pytest.mark.parametrize("doing", ["load", "idle"])
def test_a_signal_to_the_launcher_ends_the_job(start, fault_probe: Path, doing: str) -> None:
    job = start("-n", NUM_PES, fault_probe, doing)
    job.wait_ready(NUM_PES)
    job.process.send_signal(signal.SIGTERM)
    outcome = job.wait()
    assert outcome.seconds < END_WITHIN_S
    assert outcome.exit_code == 128 + signal.SIGTERM
    assert "interrupted by signal 15 (SIGTERM)" in outcome.stderr


def test_a_job_on_one_host_is_reachable_by_nobody_else(start, fault_probe: Path) -> None:
    job = start("-n", NUM_PES, fault_probe, "load")
    job.wait_ready(NUM_PES)
    listening = _listening_sockets()
    for pid in (job.process.pid, *job.pids.values()):
        assert [listening[inode] for inode in _socket_inodes(pid) if inode in listening] == []


def _socket_inodes(pid: int) -> list[str]:
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return [link[len("socket:[") : -1] for link in links if link.startswith("socket:[")]


def _listening_sockets() -> dict[str, str]:
    """What others of this host could connect to, by inode: TCP, and Unix sockets that no folder protects.

    Not UCX's datagram sockets for waking a peer: what arrives there is discarded. Not the socket
    that CUDA's driver opens.
    """
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                sockets[fields[9]] = f"{table} {fields[1]}"
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        name = fields[7] if len(fields) > 7 else ""
        if name.startswith("@") and not name.startswith("@cuda-") and fields[4] != "0002":
            sockets[fields[6]] = f"unix {name}"
    return sockets


def expect_failure(outcome, *lines: str) -> None:
    """The sentence, once, then the launcher's; nothing from the other PEs."""
    text = "\n".join(lines)
    pattern = rf"weft: {text}\nweft run: PE \d \(pid \d+\) aborted with exit code 1; ending the job\n"
    assert re.fullmatch(pattern, outcome.stderr), outcome.stderr
    assert outcome.exit_code == 1


def test_an_exception_that_nobody_awaits(run, fault_probe: Path) -> None:
    expect_failure(
        run("-n", NUM_PES, fault_probe, "throw"),
        r"PE 1: an exception without an awaiting caller left .*Worker\[1\]\.fail_later on PE 1",
        r"std::invalid_argument: the number 13 is not liked here",
        r"  .*Worker\[1\]\.fail_later on PE 1",
    )


def test_an_exception_that_main_lets_through_keeps_where_it_came_from(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "rethrow")
    assert "an exception without an awaiting caller left main on PE 0\n" in outcome.stderr
    assert "std::invalid_argument: the number 13 is not liked here\n" in outcome.stderr
    assert re.search(r"Worker\[1\]\.fail on PE 1\n", outcome.stderr), outcome.stderr
    assert outcome.exit_code == 1


def test_an_exception_that_is_caught_ends_nothing(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "catch")
    assert outcome.stdout == "caught std::invalid_argument: the number 13 is not liked here\n"
    assert (outcome.stderr, outcome.exit_code) == ("", 0)


def test_an_index_out_of_range(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "range")
    assert f"index {NUM_PES} is outside a collection of shape {NUM_PES}" in outcome.stderr
    assert outcome.exit_code == 1


def test_a_receive_of_the_wrong_size(run, fault_probe: Path) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "size")
    assert re.search(
        r"the channel .*Worker\[0\] - .*Worker\[1\], id 0, on PE 0: a receive of 8 bytes met a send of 4",
        outcome.stderr,
    ), outcome.stderr
    assert outcome.exit_code == 1


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_jobs_exit_code(run, fault_probe: Path, code: int) -> None:
    outcome = run("-n", NUM_PES, fault_probe, "exit", code)
    assert (outcome.stderr, outcome.exit_code) == ("", code)


def test_a_pe_that_sends_until_it_stops(run, fault_probe: Path) -> None:
    """PE 0 has stopped by then, and takes what comes until PE 1 has stopped too."""
    outcome = run("-n", 2, fault_probe, "late", 4)
    assert (outcome.stderr, outcome.exit_code) == ("", 4)


def test_a_pe_that_cannot_be_reached(run, fault_probe: Path) -> None:
    # A transport that only reaches the process itself.
    outcome = run(
        "-n", 2, fault_probe, "catch", env={**os.environ, "UCX_TLS": "self", "UCX_LOG_LEVEL": "fatal"}
    )
    assert re.search(r"^weft: .*PE \d cannot be reached: .*Check that UCX_TLS", outcome.stderr, re.MULTILINE)
    assert outcome.exit_code == 1


def test_different_programs_in_one_job(run, fault_probe: Path, build_folder: Path) -> None:
    ring = build_folder / "examples" / "ring"
    outcome = run("-n", 2, "sh", "-c", f"test $WEFT_PE = 0 && exec {ring}; exec {fault_probe} idle")
    assert re.search(
        r"PE \d and PE \d cannot be in one job: they differ in .*entry methods \(", outcome.stderr
    )
    assert "start the same build on every PE" in outcome.stderr
    assert outcome.exit_code == 1


PYTHON_PROGRAM = """\
import os, signal, sys, threading
import weft

def say(line):
    os.write(1, (line + "\\n").encode())

class Worker(weft.Chare):
    def hello(self):
        say(f"ready {weft.my_pe()} {os.getpid()}")

    def fail(self, number):
        raise ValueError(f"the number {number} is not liked here")

    def take(self, anything):
        pass

async def main():
    workers = weft.Group(Worker)
    what = sys.argv[1]
    if what == "idle":
        workers.hello()
    elif what == "throw":
        workers[1].fail(13)
    elif what == "argument":
        workers[1].take(threading.Lock())
    elif what == "range":
        workers[weft.num_pes()].hello()
    await weft.Future()

if sys.argv[1] == "early" and os.environ["WEFT_PE"] == "1":
    sys.exit("PE 1 does not want to")
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    weft.run(main)
except (SystemExit, KeyboardInterrupt) as ended:
    say(f"ended with {ended!r}")
    raise
"""


@pytest.fixture
def python_program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PYTHON_PROGRAM)
    return path


def test_a_killed_python_pe_ends_the_job(start, python_program: Path) -> None:
    job = start("-n", NUM_PES, python_program, "idle")
    job.wait_ready(NUM_PES)
    os.kill(job.pids[3], signal.SIGKILL)
    outcome = job.wait()
    assert outcome.seconds < END_WITHIN_S
    assert outcome.stderr == (
        f"weft run: PE 3 (pid {job.pids[3]}) was killed by signal 9 (SIGKILL); ending the job\n"
    )
    assert outcome.exit_code == 128 + signal.SIGKILL


def test_control_c_ends_a_python_job(start, python_program: Path) -> None:
    job = start("-n", NUM_PES, python_program, "idle")
    job.wait_ready(NUM_PES)
    job.process.send_signal(signal.SIGINT)
    outcome = job.wait()
    assert "weft run: interrupted by signal 2 (SIGINT)" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert outcome.exit_code == 128 + signal.SIGINT


def test_pes_that_outlive_control_c_leave_the_words_to_the_launcher(start, python_program: Path) -> None:
    # Regression: a PE that left weft.run before the launcher's SIGTERM came printed a traceback.
    job = start("-n", NUM_PES, python_program, "idle", "stubborn")
    job.wait_ready(NUM_PES)
    job.process.send_signal(signal.SIGINT)
    outcome = job.wait()
    assert set(re.findall("ended with .*", outcome.stdout)) == {"ended with KeyboardInterrupt()"}
    assert "Traceback" not in outcome.stderr
    assert outcome.exit_code == 128 + signal.SIGINT


def test_an_exception_in_python_that_nobody_awaits(run, python_program: Path) -> None:
    outcome = run("-n", NUM_PES, python_program, "throw")
    assert "PE 1: an exception without an awaiting caller left Worker[1].fail on PE 1\n" in outcome.stderr
    assert "ValueError: the number 13 is not liked here\n" in outcome.stderr
    assert re.search(rf'File "{python_program}", line \d+, in fail\n +raise ValueError', outcome.stderr), (
        outcome.stderr
    )
    assert outcome.exit_code == 1


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (
            "argument",
            r"argument 1 of Worker\[1\]\.take cannot be sent: TypeError: cannot pickle '_thread\.lock'",
        ),
        ("range", r"index 4 is outside Worker of shape \(4,\)"),
    ],
)
def test_a_python_call_that_cannot_be(run, python_program: Path, what: str, sentence: str) -> None:
    outcome = run("-n", NUM_PES, python_program, what)
    assert re.search(sentence, outcome.stderr), outcome.stderr
    assert outcome.exit_code == 1


def test_a_python_pe_that_leaves_before_the_job_starts(run, python_program: Path) -> None:
    outcome = run("-n", NUM_PES, python_program, "early")
    assert re.fullmatch(
        r"PE 1 does not want to\nweft run: PE 1 \(pid \d+\) exited with code 1; ending the job\n",
        outcome.stderr,
    ), outcome.stderr
    assert outcome.exit_code == 1
