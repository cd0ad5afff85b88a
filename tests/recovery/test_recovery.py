"""Jobs that lose PEs and go on (`weft run --on-loss restart`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
# A job that takes longer hangs.
HANG_S = 150
NUM_PES = 4


def run_job(
    losses: str, *arguments: str, num_pes: int = NUM_PES, on_loss: str = "restart"
) -> subprocess.CompletedProcess[str]:
    """Runs cells.py, which says what the losses are. No process and no shared folder of the job is left."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        environment = {**os.environ, "CELLS_NOTES": str(notes)}
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "weft", "run", "-n", str(num_pes), "--on-loss", on_loss),
                *(str(PROGRAMS / "cells.py"), losses, *arguments),
            ],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            env=environment,
        )
        left = processes_with(f"CELLS_NOTES={notes}")
        assert not left, f"processes {left} are left"
        assert not os.path.exists(notes.read_text()), "the folder of shared memory is left"
    return ended


def processes_with(setting: str) -> list[str]:
    """The processes that have the setting in their environment, with their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(f"{folder.name}: {(folder / 'cmdline').read_text()}")
        except OSError:
            continue  # it has ended, or belongs to another user
    return found


def values_of(ended: subprocess.CompletedProcess[str]) -> tuple[str, int]:
    """The line of values, and the number of recoveries."""
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    found = re.fullmatch(r"values (.*)\nrecoveries (\d+)\n", ended.stdout)
    assert found, ended.stdout
    return found[1], int(found[2])


@pytest.fixture(scope="module")
def undisturbed() -> str:
    """The values of a job that has lost nothing."""
    values, recoveries = values_of(run_job(""))
    assert recoveries == 0
    return values


def expect_recovered(undisturbed: str, losses: str, recoveries: int, num_pes: int = NUM_PES) -> None:
    """The job ends with the same bits, after so many recoveries."""
    ended = run_job(losses, num_pes=num_pes)
    assert values_of(ended) == (undisturbed, recoveries), ended.stderr
    assert ended.stderr.count("the job begins again") == recoveries


@pytest.mark.parametrize("pe", range(NUM_PES))
def test_each_pe_may_be_lost(undisturbed: str, pe: int) -> None:
    expect_recovered(undisturbed, f"work@7:{pe}@0", 1)


@pytest.mark.parametrize(
    ("losses", "recoveries"),
    [
        pytest.param("work@1:2@0", 1, id="before anything was protected"),
        pytest.param("main@5:0@0", 1, id="PE 0 in main, after moves"),
        pytest.param("protect@6:1@0", 1, id="while protecting"),
        pytest.param("work@7:1@0,recover@6:3@1", 2, id="another one while recovering"),
        pytest.param("work@7:1@0,recover@6:1@1", 2, id="its replacement while recovering"),
        pytest.param("work@4:0@0,work@7:1@1,work@10:3@2", 3, id="three, one after the other"),
        pytest.param("work@7:1@0,work@7:2@1", 2, id="its buddy, before anything new was protected"),
        pytest.param("work@7:1@0,begin@0:0@1", 2, id="one whose buddy was lost, before main asks"),
    ],
)
def test_a_loss_at_any_time(undisturbed: str, losses: str, recoveries: int) -> None:
    expect_recovered(undisturbed, losses, recoveries)


def test_two_at_once_that_are_no_buddies(undisturbed: str) -> None:
    # The launcher may see one death before the other.
    values, recoveries = values_of(run_job("work@7:0+2@0"))
    assert values == undisturbed and recoveries in (1, 2)


def test_two_pes_are_enough(undisturbed: str) -> None:
    expect_recovered(undisturbed, "work@7:1@0", 1, num_pes=2)


@pytest.mark.parametrize(("losses", "num_pes"), [("work@7:1+2@0", 4), ("work@7:0@0", 1)])
def test_both_keepers_at_once_end_the_job_in_words(losses: str, num_pes: int) -> None:
    ended = run_job(losses, num_pes=num_pes)
    assert ended.returncode == 1
    if num_pes == 1:
        assert "all PEs that kept the protected state were lost" in ended.stderr
    else:
        assert "the chares of PE 1 cannot be recovered: PE 1, which kept their state, and" in ended.stderr


def test_both_keepers_at_once_and_a_checkpoint(undisturbed: str, tmp_path: Path) -> None:
    values, recoveries = values_of(run_job("work@7:0@0", str(tmp_path), num_pes=1))
    assert (values, recoveries) == (undisturbed, 1)


def test_a_program_that_always_crashes_ends() -> None:
    ended = run_job(",".join(f"work@1:1@{incarnation}" for incarnation in range(10)))
    assert ended.returncode == 137
    assert ended.stderr.count("the job begins again") == 5
    assert "the job has begun again 5 times without a weft.protect in between" in ended.stderr


def test_without_the_option_a_loss_ends_the_job() -> None:
    ended = run_job("work@7:2@0", on_loss="end")
    assert ended.returncode == 137
    assert "was killed by signal 9 (SIGKILL); ending the job" in ended.stderr


ERROR = "async def main():\n    raise ValueError('wrong')\nweft.run(main)\n"
SECOND_RUN = """
async def first(): pass
async def second(): os.kill(os.getpid(), 9)
weft.run(first)
weft.run(second)
"""
AFTER_RECOVERY = """
class Cell(weft.Chare):
    def die(self): os.kill(os.getpid(), 9)
async def first():
    saved = await weft.recovered()
    cells = weft.Array(Cell, 2) if saved is None else saved["cells"]
    if weft.recoveries() == 0:
        await weft.protect({"cells": cells})
        await cells[1].die.call()
async def second():
    print(await weft.recovered(), weft.recoveries())
    await weft.protect({"cells": weft.Array(Cell, 2)})
weft.run(first)
weft.run(second)
"""
FAILS_TO_COME_BACK = """
class Cell(weft.Chare):
    def migrated(self): raise ValueError("no place here")
    def die(self): os.kill(os.getpid(), 9)
async def main():
    folder = os.path.join(os.path.dirname(__file__), "saved")
    saved = await weft.recovered(folder)
    cells = weft.Array(Cell, 2)
    await weft.protect({"cells": cells})
    await weft.checkpoint(folder, {"cells": cells})
    await cells[1].die.call()
weft.run(main)
"""
AFTER_JOB = """
async def main(): pass
weft.run(main)
if os.environ["WEFT_PE"] == "1": os.kill(os.getpid(), 9)
"""
PGAS = """
def main(world):
    if world.rank == 1: os.kill(os.getpid(), 9)
    world.barrier()
weft.pgas.run(main)
"""


@pytest.mark.parametrize(
    ("program", "exit_code", "words"),
    [
        pytest.param(ERROR, 1, "ValueError: wrong", id="an error of the program"),
        pytest.param(SECOND_RUN, 137, "a second weft.run cannot begin again", id="a loss in a second job"),
        pytest.param(AFTER_JOB, 137, "after it had finished", id="a loss after the job"),
        pytest.param(PGAS, 137, "weft.pgas.run and a second weft.run cannot begin again", id="weft.pgas.run"),
    ],
)
def test_what_ends_the_job_nevertheless(tmp_path: Path, program: str, exit_code: int, words: str) -> None:
    ended = run_text(tmp_path, program)
    assert ended.returncode == exit_code
    assert words in ended.stderr and "the job begins again" not in ended.stderr


def run_text(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on two PEs."""
    (folder / "program.py").write_text(f"import os\nimport weft\n{program}")
    return subprocess.run(
        [
            *(sys.executable, "-m", "weft", "run", "-n", "2", "--on-loss", "restart"),
            str(folder / "program.py"),
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )


def test_a_job_after_a_recovery_has_lost_nothing(tmp_path: Path) -> None:
    ended = run_text(tmp_path, AFTER_RECOVERY)
    assert (ended.returncode, ended.stdout) == (0, "None 0\n"), ended.stderr


def test_a_chare_that_cannot_come_back_is_no_reason_for_the_checkpoint(tmp_path: Path) -> None:
    ended = run_text(tmp_path, FAILS_TO_COME_BACK)
    assert ended.returncode != 0
    assert "no place here" in ended.stderr and ended.stderr.count("the job begins again") == 1


@pytest.mark.parametrize(
    ("losses", "num_pes"),
    [(("0@4",), 4), (("1@7", "2@8"), 4), (("3@1",), 4), (("r2@3", "r6@6", "1@7"), 6)],
)
def test_a_program_in_cpp(build_folder: Path, losses: tuple[str, ...], num_pes: int) -> None:
    program = build_folder / "tests" / "recovery" / "recovery_probe"
    outputs = []
    for given in ((), losses):
        ended = subprocess.run(
            [*(sys.executable, "-m", "weft", "run", "-n", "4", "--on-loss", "restart"), str(program), *given],
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
        assert ended.returncode == 0, ended.stderr
        outputs.append(ended.stdout.splitlines())
    assert outputs[0][0] == outputs[1][0]
    assert [lines[1] for lines in outputs] == ["recoveries 0", f"recoveries {len(losses)}"]
    assert outputs[1][2] == f"pes {num_pes}"
