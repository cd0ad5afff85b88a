"""Collective operations of teams in a main of weft.run, which runs on PE 0 alone."""

from __future__ import annotations

import pytest

from .conftest import PROGRAMS, RunProgram

ALONE = {
    "make_array": "weft.pgas.make_array",
    "barrier": "Team.barrier",
    "broadcast": "Team.broadcast",
    "reduce": "Team.reduce",
    "allreduce": "Team.allreduce",
    "split": "Team.split",
    "after_others": "Team.barrier",
}


@pytest.mark.parametrize("num_pes", [2, 3])
@pytest.mark.parametrize("mode", ALONE)
def test_a_main_that_waits_for_ever_is_reported(run_program: RunProgram, mode: str, num_pes: int) -> None:
    ended = run_program(num_pes, "lone_main.py", mode, "0.01")
    assert ended.returncode == 3
    lines = (PROGRAMS / "lone_main.py").read_text(encoding="utf-8").splitlines()
    first = lines.index(f"async def {mode}() -> None:")
    end = lines.index("", first)
    last_await = max(number for number in range(first, end) if "await " in lines[number])
    where = f"(lone_main.py, line {last_await + 1})"
    assert f"main on PE 0 waits in {ALONE[mode]} {where}" in ended.stderr
    others = "PE 1 has" if num_pes == 2 else "PEs 1, 2 have"
    assert f"which {others} not called. All PEs" in ended.stderr
    assert "weft.pgas.run(main)" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("mode", ["make_array", "barrier", "split"])
def test_one_pe_waits_for_none(run_program: RunProgram, mode: str) -> None:
    ended = run_program(1, "lone_main.py", mode)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("num_pes", [2, 3])
def test_others_may_come_later(run_program: RunProgram, num_pes: int) -> None:
    ended = run_program(num_pes, "lone_main.py", "with_others", "60")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "all checked\n", "")


def test_the_job_goes_on_if_the_sentence_cannot_be_printed(run_program: RunProgram) -> None:
    ended = run_program(2, "lone_main.py", "barrier", "0.01", "full")
    assert (ended.returncode, ended.stderr) == (3, "")
