"""Jobs that get another number of PEs: by weft.resize, by a signal, by a loss, by `weft resize`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "resized_cells.py"
# A job that takes longer hangs.
HANG_S = 150
STEPS = 10


def run(
    events: str, num_pes: int, *options: str, on_loss: str = "restart"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", "run", "-n", str(num_pes), "--on-loss", on_loss, *options]
    return subprocess.run(
        [*command, str(PROGRAM), str(STEPS), events], capture_output=True, text=True, timeout=HANG_S
    )


@pytest.fixture(scope="module")
def undisturbed() -> str:
    """The results of a job that keeps its PEs."""
    return run("", 2).stdout.splitlines()[0]


def expect(ended: subprocess.CompletedProcess[str], undisturbed: str, num_pes: int, begun: int) -> None:
    """The job has ended with the same bits, on so many PEs, after main has begun again so often."""
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [undisturbed, f"pes {num_pes} begun again {begun}"], ended.stderr


def left(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """The PEs whose processes have left the job, as the launcher says it."""
    return sorted(re.findall(r"PE (\d+) \(pid \d+\) has left the job", ended.stderr))


def test_a_job_shrinks_and_grows(undisturbed: str) -> None:
    ended = run("resize=1@2@0,resize=4@3@1,resize=2@7@2", 3, "--bind", "core")
    expect(ended, undisturbed, 2, 3)
    assert left(ended) == ["1", "2", "2", "3"]
    for change in ("from 3 to 1 PE;", "from 1 to 4 PEs\n", "from 4 to 2 PEs; PE 2, 3 leave"):
        assert f"the job goes {change}" in ended.stderr
    assert ended.stderr.count("PE 0 is bound") == 4


def test_a_job_shrinks_by_a_loss_pe_0_too(undisturbed: str) -> None:
    ended = run("kill=0@3@0,kill=1@7@1", 3, on_loss="shrink")
    expect(ended, undisturbed, 1, 2)
    assert "the job begins again with 2 PEs (recovery 1)" in ended.stderr


def test_a_loss_before_anything_was_protected(undisturbed: str) -> None:
    expect(run("kill=1@0@0", 3, on_loss="shrink"), undisturbed, 2, 1)


def test_the_last_pe_of_a_job_that_shrinks_ends_it_in_words() -> None:
    ended = run("kill=0@3@0", 1, on_loss="shrink")
    assert ended.returncode == 137 and "no PE is left" in ended.stderr


@pytest.mark.parametrize("pe", [0, 2])
def test_a_pe_that_gets_sigterm_leaves(undisturbed: str, pe: int) -> None:
    ended = run(f"drain={pe}@3@0", 3, "--drain-on", "SIGTERM")
    expect(ended, undisturbed, 2, 1)
    assert left(ended) == [str(pe)] and "got SIGTERM: it leaves at the next weft.protect" in ended.stderr


def test_sigterm_to_weft_run_ends_a_job_whose_pes_drain(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(WAITS)
    command = [sys.executable, "-m", "weft", "run", "-n", "2", "--on-loss", "shrink", "--drain-on", "SIGTERM"]
    with subprocess.Popen(
        [*command, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
        job.terminate()
        words = job.communicate(timeout=HANG_S)[1]
    assert job.returncode == 143 and "interrupted by signal 15 (SIGTERM)" in words
    assert "leaves at the next weft.protect" not in words


def test_a_pe_that_is_killed_before_it_has_left_is_a_loss(undisturbed: str) -> None:
    ended = run("drain=1@3@0,protect=1@4@0", 3, "--drain-on", "SIGTERM")
    expect(ended, undisturbed, 3, 1)
    assert left(ended) == [] and "(SIGKILL); the job begins again (recovery 1)" in ended.stderr


@pytest.mark.parametrize(
    ("events", "on_loss", "num_pes", "begun"),
    [
        pytest.param("resize=2@2@0,recover=1@2@1", "restart", 2, 2, id="a kill while the smaller job begins"),
        pytest.param("resize=4@2@0,recover=3@2@1", "restart", 4, 2, id="a kill of a new PE"),
        pytest.param("resize=4@2@0,recover=1@2@1", "shrink", 3, 2, id="the same in a job that shrinks"),
        pytest.param("resize=2@4@0,protect=2@4@0", "restart", 2, 2, id="a kill while it protects for it"),
        pytest.param("kill=1@3@0,resize=2@4@1", "restart", 2, 2, id="a resize after a recovery"),
    ],
)
def test_losses_around_a_resize(
    undisturbed: str, events: str, on_loss: str, num_pes: int, begun: int
) -> None:
    expect(run(events, 3, on_loss=on_loss), undisturbed, num_pes, begun)


REFUSED = """
import weft
async def main():
    for num_pes in (0, 5000):
        try:
            await weft.resize(num_pes)
        except weft.Error as error:
            print(error)
    if PROTECTS:
        await weft.resize(1)
        try:
            await weft.resize(3)
        except weft.Error as error:
            print(error)
        group = weft.Group(Member)
        await weft.protect({"group": group})
        print("goes on with", weft.num_pes())
class Member(weft.Chare): pass
weft.run(main)
"""


def test_what_is_refused_is_said(tmp_path: Path) -> None:
    program = tmp_path / "refused.py"
    program.write_text(REFUSED.replace("PROTECTS", "True"))
    command = [sys.executable, "-m", "weft", "run", "-n", "2"]
    ended = subprocess.run(
        [*command, "--on-loss", "restart", str(program)], capture_output=True, text=True, timeout=HANG_S
    )
    assert ended.returncode == 0, ended.stderr
    words = ("at least one", "at most 4096", "a resize to 1 PEs is under way", "goes on with 2")
    for line, expected in zip(ended.stdout.splitlines(), words, strict=True):
        assert expected in line
    assert "the job keeps its 2 PEs: " in ended.stderr and "has a group" in ended.stderr
    program.write_text(REFUSED.replace("PROTECTS", "False"))
    for options, said in (([], "resize needs a job"), (["--drain-on", "SIGTERM"], "--drain-on needs")):
        ended = subprocess.run(
            [*command, *options, str(program)], capture_output=True, text=True, timeout=HANG_S
        )
        assert said in ended.stdout + ended.stderr


WAITS = """
import asyncio, sys, weft
class Cell(weft.Chare):
    def pe(self): return weft.my_pe()
async def main():
    saved = await weft.recovered()
    cells = weft.Array(Cell, 6) if saved is None else saved["cells"]
    if saved is None:
        print("ready", flush=True)
    while weft.num_pes() != 3:
        await weft.protect({"cells": cells})
    print(sorted(set(await cells.pe.call())))
weft.run(main)
"""


def test_weft_resize_asks_the_launcher(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(WAITS)
    weft = [sys.executable, "-m", "weft"]
    with subprocess.Popen(
        [*weft, "run", "-n", "1", "--on-loss", "restart", str(program)], stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
        refused = subprocess.run(
            [*weft, "resize", str(job.pid), "-n", "0"], capture_output=True, text=True, timeout=HANG_S
        )
        assert refused.returncode == 2 and "at least one PE" in refused.stderr
        asked = subprocess.run(
            [*weft, "resize", str(job.pid), "-n", "3"], capture_output=True, text=True, timeout=HANG_S
        )
        assert asked.returncode == 0, asked.stderr
        assert asked.stdout == f"the job of process {job.pid} has 3 PEs after its next weft.protect\n"
        assert job.communicate(timeout=HANG_S)[0] == "[0, 1, 2]\n" and job.returncode == 0
    unknown = subprocess.run(
        [*weft, "resize", str(os.getpid()), "-n", "3"], capture_output=True, text=True, timeout=HANG_S
    )
    assert unknown.returncode == 2 and "PMIx, PMI and Slurm do not" in unknown.stderr
