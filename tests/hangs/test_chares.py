"""Programs of chares: what a report says of wrong ones, and that right ones are not reported."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
MAIN_HANGS = PROGRAMS / "main_hangs.py"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def place(marker: str) -> str:
    """The place of the line of main_hangs.py with that comment, as reports say it."""
    lines = MAIN_HANGS.read_text(encoding="utf-8").splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))
    return f"main_hangs.py:{number})"


def test_each_wrong_program_is_named(run_hanging: Run) -> None:
    """All of them are jobs of the same two processes, one after the other; the report is asked for."""
    job = run_hanging(2, "off", PROGRAMS / "chares.py", "wrong")
    assert job.stdout == "done\n", job.stdout + job.stderr
    assert job.returncode == 0, job.stderr


def test_right_programs_are_not_reported(run_hanging: Run) -> None:
    job = run_hanging(2, "0.3", PROGRAMS / "chares.py", "right")
    assert job.stdout == "done\n", job.stdout + job.stderr
    assert job.stderr == ""


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_job_that_hangs_ends_with_a_report(run_hanging: Run, num_pes: int) -> None:
    job = run_hanging(num_pes, "0.3,end", MAIN_HANGS)
    assert job.returncode == 1
    assert "weft: the program hangs: its " in job.stderr
    assert "cause: Cell[0] waits for Cell[1], and Cell[1] for Cell[0]" in job.stderr
    assert f"{place('both wait here')}: recv of 32 bytes from Cell[1], channel id 0" in job.stderr
    assert f"{place('main waits here')}: the result of Cell.exchange" in job.stderr


def test_a_wait_for_quiescence_hangs_with_a_message_that_nothing_receives(run_hanging: Run) -> None:
    job = run_hanging(2, "0.3,end", MAIN_HANGS, "quiescence")
    assert job.returncode == 1
    assert "no timer runs, and 1 message waits for a receive" in job.stderr
    assert f"{place('main waits for quiescence here')}: weft.quiescence" in job.stderr


def test_a_setting_that_is_none_is_refused(run_hanging: Run) -> None:
    job = run_hanging(1, "soon", MAIN_HANGS)
    assert job.returncode != 0
    assert "WEFT_HANG_REPORT is 'soon': give seconds such as 10" in job.stderr


def test_a_signal_asks_for_a_report(tmp_path: Path) -> None:
    output = tmp_path / "stderr.txt"
    command = [sys.executable, "-m", "weft", "run", "-n", "2", "--hang-report", "off", str(MAIN_HANGS)]
    with output.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as job:
        try:
            until = time.monotonic() + 60
            while "recv of 32 bytes" not in output.read_text() and time.monotonic() < until:
                subprocess.run([sys.executable, "-m", "weft", "status", str(job.pid)], check=False)
                time.sleep(0.2)  # between two questions
        finally:
            job.terminate()
    report = output.read_text()
    assert "weft: what the PEs of the job wait for" in report
    assert "cause: Cell[0] waits for Cell[1], and Cell[1] for Cell[0]" in report
    assert "most recent call first" in report  # the stacks
