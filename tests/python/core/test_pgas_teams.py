"""weft.pgas: teams, calls of functions, distributed objects and collectives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3, 4])
def test_teams(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "pgas_teams.py") == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("unawaited", "the value is 4"),
        ("dropped", "the value is 5"),
        ("raise", "the value is 6"),
    ],
)
def test_errors_that_nothing_awaits_end_the_job(run_job: RunJob, mode: str, words: str, num_pes: int) -> None:
    ended = run_job(num_pes, "pgas_teams.py", mode)
    assert ended.returncode == 1
    assert words in ended.stderr
    assert "LookupError" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_any_pe_ends_the_job_with_a_code(run_job: RunJob, num_pes: int) -> None:
    assert run_job(num_pes, "pgas_teams.py", "exit").returncode == 3


@pytest.mark.parametrize("num_pes", [1, 3])
def test_calls_that_are_under_way_run_before_the_end(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert expect_success(num_pes, "pgas_teams.py", "late") == "late\n" * num_pes
