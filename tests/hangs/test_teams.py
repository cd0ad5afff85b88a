"""Programs of teams: what a report says of wrong ones."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

TEAMS = Path(__file__).parent / "programs" / "teams.py"
LINE = 1 + TEAMS.read_text(encoding="utf-8")[
    : TEAMS.read_text(encoding="utf-8").index("# nothing sets it")
].count("\n")
CAUSE = f"teams.py:{LINE}): a future that nothing has set"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("kind", "waits_for"), [("barrier", 1), ("blocking", 1), ("call", 0)], ids=lambda value: str(value)
)
def test_a_wrong_program_is_named(run_hanging: Run, kind: str, waits_for: int) -> None:
    job = run_hanging(2, "0.3,end", TEAMS, kind)
    assert job.returncode == 1
    assert "cause: main on PE 1 (" in job.stderr
    assert CAUSE in job.stderr
    assert f"barrier of a team, in which PE {waits_for} has not taken its part" in job.stderr
