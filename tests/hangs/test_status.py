"""`weft status`: what it makes of the files that PEs write, and which processes it takes for PEs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weft._cli import status
from weft._cli.status import _BEGIN, _END, _Pe

LIMIT_S = 60
# Handles SIGUSR1, as a PE does.
PROGRAM = "import signal; signal.signal(signal.SIGUSR1, lambda *_: None); print(flush=True); signal.pause()"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(launcher's number, PE) starts a process with the variables of that PE, and makes its file."""
    processes: list[subprocess.Popen[str]] = []

    def start_pe(launcher: int, pe: str) -> subprocess.Popen[str]:
        (tmp_path / f"status-{pe}").touch()
        variables = {"WEFT_LAUNCHER_PID": str(launcher), "WEFT_PE": pe, "UCX_POSIX_DIR": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        return process

    yield start_pe
    for process in processes:
        process.kill()
        process.communicate(timeout=LIMIT_S)


# A launcher that is no process of this host, and that no other run of these tests has.
NO_LAUNCHER = 2**22 + 4 * os.getpid()


def test_the_pes_of_a_launcher(start: Start) -> None:
    launcher = NO_LAUNCHER + 1
    first, second, _ = start(launcher, "0"), start(launcher, "1"), start(launcher, "x")
    for pid in (launcher, first.pid, second.pid):
        assert [(pe.number, pe.pid) for pe in sorted(status._pes_of(pid))] == [
            (0, first.pid),
            (1, second.pid),
        ]


def test_a_launcher_that_a_pe_has_started(start: Start) -> None:
    outer = start(NO_LAUNCHER + 2, "0")
    inner = start(outer.pid, "0")
    assert [pe.pid for pe in status._pes_of(outer.pid)] == [inner.pid]


def test_a_pe_that_makes_no_report_is_not_asked(start: Start) -> None:
    pe = start(NO_LAUNCHER + 3, "1")
    command = [sys.executable, "-m", "weft", "status", str(pe.pid)]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert asked.returncode == 2
    assert f"process {pe.pid} is PE 1, and PE 0 makes the report" in asked.stderr
    assert pe.poll() is None


@pytest.fixture
def pes(tmp_path: Path) -> list[_Pe]:
    for number in range(2):
        (tmp_path / f"status-{number}").touch()
    return [_Pe(number, os.getpid(), tmp_path / f"status-{number}", 0, 0.0) for number in range(2)]


def test_a_stack_that_is_written_behind_the_report(pes: list[_Pe], monkeypatch: pytest.MonkeyPatch) -> None:
    """PE 1 may be slower than the report, and write its stack in pieces."""
    pieces = iter(["stack", " of PE 1\n"])
    pes[0].file.write_text(f"stack of PE 0\n{_BEGIN}  a wait\n{_END}")

    def write_more(_: float) -> None:
        with pes[1].file.open("a") as file:
            file.write(next(pieces, ""))

    monkeypatch.setattr(time, "sleep", write_more)
    assert status._wait_for_answer(pes, time.monotonic() + LIMIT_S) == f"{_BEGIN}  a wait\n"
    assert status._text_of(pes[1], 1.0).endswith("stack of PE 1\n")


def test_a_report_that_others_have_asked_for_too(pes: list[_Pe]) -> None:
    report = f"{_BEGIN}  a wait\n"
    pes[0].file.write_text(f"the rest of an earlier one\n{_END}stack\n{report}{_END}stack\n")
    pes[1].file.write_text("stack\n")
    assert status._wait_for_answer(pes, time.monotonic() + LIMIT_S) == report


def test_pe_0_does_not_answer(pes: list[_Pe]) -> None:
    pes[0].file.write_text(f"stack\n{_BEGIN}  a wa")
    assert "PE 0, which gathers" in status._wait_for_answer(pes, time.monotonic())
    pes[0].file.unlink()
    assert "PE 0, which gathers" in status._wait_for_answer(pes, time.monotonic() + LIMIT_S)


def test_the_process_of_no_job() -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    try:
        assert list(status._pes_of(process.pid)) == []
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)
