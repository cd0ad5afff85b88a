"""The other PEs end with the process that has started them, in whatever way it ends."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Prints the process numbers of its PEs, and waits for ever. Its child holds all descriptors that it can.
WAITING = """\
import os, signal, sys, weft
class A(weft.Chare):
    def process(self): return os.getpid()
async def main():
    processes = await weft.Group(A).process.call()
    if os.fork() == 0:
        os.close(1)
        signal.pause()
    print(*processes, flush=True)
    try:
        await weft.Future()
    finally:
        print("finally", flush=True)
def in_session():
    session = weft.session(pes=3)
    if sys.argv[1] == "session at exit": session.submit(main); input(); return
    session.run(main)
try:
    weft.run(main, pes=3) if sys.argv[1] == "run" else in_session()
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
"""

Start = Callable[[str], tuple[subprocess.Popen[str], list[int]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(kind): the process, and pidfds of the other PEs. Its child ends with the test."""
    processes: list[subprocess.Popen[str]] = []
    (tmp_path / "waiting.py").write_text(WAITING)

    def start_waiting(kind: str) -> tuple[subprocess.Popen[str], list[int]]:
        process = subprocess.Popen(
            [sys.executable, "waiting.py", kind],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert pids[0] == process.pid
        assert len(pids) == 3
        return process, [os.pidfd_open(pid) for pid in pids[1:]]

    yield start_waiting
    for process in processes:
        with process, contextlib.suppress(ProcessLookupError):  # it ended before it had a child
            os.killpg(process.pid, signal.SIGKILL)


def expect_end(descriptors: list[int]) -> None:
    """Waits for the processes of these pidfds."""
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 30)[0], "a PE outlived the process that has started it"
        os.close(descriptor)


# weft.run raises SystemExit after SIGTERM.
@pytest.mark.parametrize(
    ("kind", "number", "code"),
    [
        ("run", signal.SIGKILL, -signal.SIGKILL),
        ("run", signal.SIGTERM, 128 + signal.SIGTERM),
        ("session", signal.SIGKILL, -signal.SIGKILL),
        ("session", signal.SIGTERM, -signal.SIGTERM),
    ],
)
def test_a_signal_that_ends_this_process(
    start: Start, kind: str, number: signal.Signals, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    process, descriptors = start(kind)
    process.send_signal(number)
    assert process.wait() == code
    assert capfd.readouterr().err == ""
    expect_end(descriptors)


@pytest.mark.parametrize("kind", ["run", "session"])
def test_ctrl_c_is_a_keyboard_interrupt(start: Start, kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    process, descriptors = start(kind)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert "KeyboardInterrupt" in output
    assert process.returncode == 0
    assert capfd.readouterr().err == ""
    expect_end(descriptors)


def test_a_session_that_is_open_when_the_interpreter_ends(start: Start) -> None:
    process, descriptors = start("session at exit")
    process.communicate("\n")
    assert process.returncode == 0
    expect_end(descriptors)


CLEANING = """\
import atexit, os, signal, time, weft
class A(weft.Chare):
    def register(self): atexit.register(exit_function, weft.my_pe())
def exit_function(pe):
    time.sleep(1.2)  # longer than a PE has that must end
    print("cleaned up", flush=True)
    if pe == 2: signal.pause()
async def main():
    group = weft.Group(A)
    await group[1].register.call()
    await group[2].register.call()
weft.run(main, pes=3)
"""


def test_exit_functions_of_the_other_pes_run_and_one_that_hangs_is_named(run_program) -> None:
    ended = run_program(CLEANING)
    assert ended.returncode == 0
    assert ended.stdout == "cleaned up\n" * 2
    assert re.fullmatch(r"PE 2 \(pid \d+\) was killed: it had not ended 5 s after the job\n", ended.stderr)
