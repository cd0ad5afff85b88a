"""`weft top` in a terminal: what it draws, and its keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Start = Callable[..., Any]  # see conftest.py
HANG_S = 150
TWO = ["-m", "weft", "run", "-n", "2"]
# Control sequences of a terminal, colours among them.
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program with a terminal of 24 lines of 150 characters."""

    def __init__(self, *arguments: str) -> None:
        self._fd, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 150, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        argv = [sys.executable, "-m", "weft", *arguments]
        self.process = subprocess.Popen(
            argv, stdin=other, stdout=other, stderr=other, env=environment, preexec_fn=self._take_terminal
        )
        os.close(other)

    @staticmethod
    def _take_terminal() -> None:
        """Its keys send signals then."""
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read_until(self, text: str) -> str:
        """What the program draws until `text` appears, without control sequences."""
        data = b""
        deadline = time.monotonic() + HANG_S
        while text.encode() not in _CONTROL.sub(b"", data):
            ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
            try:
                more = os.read(self._fd, 1 << 16) if ready else b""
            except OSError:  # the program has ended
                more = b""
            if not more:
                pytest.fail(f"{text!r} is not in {_CONTROL.sub(b'', data)[-4000:].decode()}")
            data += more
        return _CONTROL.sub(b"", data).decode()

    def press(self, key: str) -> None:
        os.write(self._fd, key.encode())

    def wait(self) -> int:
        return self.process.wait(timeout=HANG_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(*arguments: str) -> Terminal:
        opened.append(Terminal(*arguments))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_keys(start: Start, terminal: Callable[..., Terminal]) -> None:
    job = start(TWO)
    screen = terminal("top", "--interval", "0.2", str(job.number))
    assert f"job {job.number}: 2 PEs" in screen.read_until("q: quit")
    screen.press("s")
    screen.press("r")
    screen.read_until("q: quit")
    screen.press("w")
    screen.read_until(f"process {job.number} is asked")
    screen.press("q")
    assert screen.wait() == 0
    job.read_errors_until("what the PEs of the job wait for")


def test_a_job_that_ends(start: Start, terminal: Callable[..., Terminal]) -> None:
    job = start(TWO)
    screen = terminal("top", "--interval", "0.2", str(job.number))
    screen.read_until("q: quit")
    job.end()
    screen.read_until("weft top: the job has ended")
    assert screen.wait() == 0


def test_ctrl_c(start: Start, terminal: Callable[..., Terminal]) -> None:
    job = start(TWO)
    screen = terminal("top", str(job.number))
    screen.read_until("q: quit")
    screen.press("\x03")
    assert screen.wait() == 0
