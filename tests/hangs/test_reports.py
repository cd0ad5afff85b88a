"""What a job does with a report: it goes on, ends, or is asked for one."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest

from weft._cli.frames import entry_method, with_names

PROGRAMS = Path(__file__).parent / "programs"
LIMIT_S = 60
MAIN_HANGS = PROGRAMS / "main_hangs.py"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def place(marker: str) -> str:
    """The place of the line of main_hangs.py with that comment, as reports say it."""
    lines = MAIN_HANGS.read_text(encoding="utf-8").splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))
    return f"main_hangs.py:{number})"


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


@contextlib.contextmanager
def started(*arguments: str, stderr: TextIO | int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """A job of two PEs."""
    command = [sys.executable, "-m", "weft", "run", "-n", "2", *arguments]
    with subprocess.Popen(command, stderr=stderr) as job:
        try:
            yield job
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):  # the second one kills what does not end
                job.send_signal(number)


@contextlib.contextmanager
def running(output: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A job of main_hangs.py, whose stderr is in the file."""
    with (
        output.open("w") as stderr,
        started("--hang-report", "off", str(MAIN_HANGS), *arguments, stderr=stderr) as job,
    ):
        yield job


def stack_in(answer: str, pe: int) -> str:
    """What `weft status` has printed of the PE's process."""
    _, _, rest = answer.partition(f"PE {pe}, process ")
    return re.split(r"^(?:PE \d+, process |weft: what the PEs)", rest, flags=re.MULTILINE)[0]


def answer_with(job: subprocess.Popen[bytes], *texts: str, of_pe_1: tuple[str, ...] = ()) -> str:
    """What `weft status` prints, as soon as all of the texts are in it: the job begins meanwhile.

    `of_pe_1`: texts that must be in the part of that PE.
    """
    until = time.monotonic() + LIMIT_S
    while True:
        command = [sys.executable, "-m", "weft", "status", str(job.pid)]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        has_all = all(text in asked.stdout for text in texts)
        stack = stack_in(asked.stdout, 1)
        if (has_all and all(text in stack for text in of_pe_1)) or time.monotonic() > until:
            return asked.stdout


def test_status_prints_the_report_and_the_stacks(tmp_path: Path) -> None:
    output = tmp_path / "stderr.txt"
    with running(output) as job:
        cause = "cause: Cell[0] waits for Cell[1], and Cell[1] for Cell[0]"
        answer = answer_with(job, cause, "PE 0, process ", of_pe_1=("main_hangs.py",))
    assert cause in answer
    assert "weft: what the PEs of the job wait for" in answer
    for pe in range(2):
        stack = stack_in(answer, pe)
        assert "most recent call first" in stack
        assert "main_hangs.py" in stack
    assert cause in output.read_text()  # of the job, too
    assert "most recent call first" in output.read_text()


def test_status_tells_where_a_pe_is_in_c(tmp_path: Path) -> None:
    with running(tmp_path / "stderr.txt", "compute") as job:
        texts = "no answer from PE 1", "the result of Cell.compute"
        answer = answer_with(job, *texts, of_pe_1=("in compute", ", in one entry method"))
    assert "no answer from PE 1: the program computes there, or is in a call of C" in answer
    stack = stack_in(answer, 1)
    assert "in compute" in stack
    assert ", in one entry method, or outside of Weft, for " in stack
    assert "the result of Cell.compute" in answer


def test_calls_that_wait_for_room_are_told(tmp_path: Path) -> None:
    with running(tmp_path / "stderr.txt", "full") as job:
        answer = answer_with(job, "flow control: 1 call waits for PE 1, which has handled ")
    assert "PE 0: flow control: 1 call waits for PE 1, which has handled " in answer


def test_the_stack_of_a_rank_has_names(wrong_ranks: Path) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("needs addr2line: apt-get install binutils")
    with started("--hang-report", "off", str(wrong_ranks), "crossed_receives") as job:
        answer = answer_with(job, of_pe_1=("crossed_receives in ", "idle for "))
    stack = stack_in(answer, 1)
    assert f"crossed_receives in {wrong_ranks}" in stack
    assert ", idle for " in stack


# As addr2line writes them.
STACK = """\
Cell::smooth(double) in /home/me/app(+0x1f2a)[0x55d0]
weft::chare::EntryMethod<Cell, &Cell::smooth>::run_plainly(void*) in /me/app(+0x2bb1)[0x55d0]
weft::chare::EntryMethod<Main, &(anonymous namespace)::Main::go>::invoke(void*) in /me/app(+0x31)[0x55d0]
"""


def test_the_entry_method_of_a_stack() -> None:
    inner, outer = STACK.splitlines(keepends=True)[1:]
    assert entry_method(STACK) == entry_method(inner) == "Cell::smooth"
    assert entry_method(outer) == "(anonymous namespace)::Main::go"
    assert entry_method("main in /home/me/app(+0x31)[0x55d0]\n") == ""
    assert with_names("/no/such/app(+0x31)[0x55d0]\n") == "/no/such/app(+0x31)[0x55d0]\n"
