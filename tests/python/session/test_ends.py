"""The other PEs end with the process that has started them, in whatever way it ends."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Prints the process numbers of its PEs, and waits for ever. Its child holds all descriptors that it can.
WAITING = """\
import os, signal, sys, time, weft
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
    if sys.argv[1] == "session at exit": session.submit(main); time.sleep(0.1); input(); return
    session.run(main)
try:
    weft.run(main, pes=3) if sys.argv[1] == "run" else in_session()
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
"""


def start(folder: Path, kind: str) -> tuple[subprocess.Popen[str], list[int]]:
    (folder / "waiting.py").write_text(WAITING)
    process = subprocess.Popen(
        [sys.executable, "waiting.py", kind],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    assert pids[0] == process.pid
    assert len(pids) == 3
    return process, pids[1:]


def expect_end(descriptors: list[int]) -> None:
    """Waits for the processes of these pidfds."""
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 30)[0], "a PE outlived the process that has started it"
        os.close(descriptor)


@pytest.mark.parametrize("kind", ["run", "session"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_that_ends_this_process(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    process, others = start(tmp_path, kind)
    descriptors = [os.pidfd_open(pid) for pid in others]
    process.send_signal(number)
    # The thread of weft.run is interrupted; that of a session is not this one.
    assert process.wait() == (143 if (kind, number) == ("run", signal.SIGTERM) else -number)
    expect_end(descriptors)
    os.killpg(process.pid, signal.SIGKILL)  # the child


@pytest.mark.parametrize("kind", ["run", "session"])
def test_ctrl_c_is_a_keyboard_interrupt(tmp_path: Path, kind: str) -> None:
    process, others = start(tmp_path, kind)
    descriptors = [os.pidfd_open(pid) for pid in others]
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert "KeyboardInterrupt" in output
    assert process.returncode == 0
    expect_end(descriptors)
    os.killpg(process.pid, signal.SIGKILL)


def test_a_session_that_is_open_when_the_interpreter_ends(tmp_path: Path) -> None:
    process, others = start(tmp_path, "session at exit")
    descriptors = [os.pidfd_open(pid) for pid in others]
    process.communicate("\n")
    assert process.returncode == 0
    expect_end(descriptors)
    os.killpg(process.pid, signal.SIGKILL)


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
