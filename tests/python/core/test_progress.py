"""weft.progress_bar: what it counts, and what a log and a terminal show."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weft


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading is a second later."""
    monkeypatch.setattr("weft._support.progress._clock", itertools.count().__next__)


def test_a_log_gets_a_line_every_ten_seconds_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(weft.progress_bar(range(25), label="cells")) == list(range(25))
    first, second, last = capsys.readouterr().err.splitlines()
    assert first == "cells: 10/25 (40 %), 0.909/s, 16 s left"
    assert second == "cells: 19/25 (76 %), 0.905/s, 7 s left"
    assert last == "cells: 25/25 (100 %), 0.893/s, 28.0 s"


def test_a_context_counts_what_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with weft.progress_bar(total=8) as bar:
        bar.advance(2.5)
        assert str(bar) == "2.5/8 (31 %), 1.25/s, 4 s left"
        bar.total = None
        assert str(bar) == "2.5, 0.833/s"
    bar.close()
    assert capsys.readouterr().err == "2.5, 0.625/s, 4.0 s\n", "only once"
    with pytest.raises(TypeError, match="no items to loop over"):
        next(iter(bar))


def test_a_loop_that_fails_ends_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError):
        for item in weft.progress_bar([1, 0], label="parts"):
            {1: 1}[item]
    assert capsys.readouterr().err.startswith("parts: 1/2 (50 %)")


def test_asynchronous_items(capsys: pytest.CaptureFixture[str]) -> None:
    async def items() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def total() -> int:
        return sum([item async for item in weft.progress_bar(items(), total=2)])

    with pytest.raises(StopIteration) as ended:
        total().send(None)
    assert ended.value.value == 3
    assert capsys.readouterr().err.startswith("2/2 (100 %)")


PROGRAM = """\
import weft
class Cell(weft.Chare):
    def step(self): pass
async def main():
    cells = weft.Array(Cell, 2)
    for _ in weft.progress_bar(range(50), label="steps"):
        await cells.step.call()
weft.run(main)
"""


def test_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "weft", "run", "-n", "2", str(program)]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    assert "━" in shown.decode()
    assert "steps: 50/50 (100 %)" in shown.decode()
