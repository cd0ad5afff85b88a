"""Reductions in Python: what they take and where the results go, and what ends the job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize(
    "program", ["bound_targets.py", "empty_reductions.py", "reductions.py"]
)
def test_reductions(expect_success: Callable[..., str], program: str, num_pes: int) -> None:
    assert expect_success(num_pes, program) == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_value_from_some_elements_only_ends_the_job(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "empty_reductions.py", "mixed")
    assert ended.returncode == 1
    assert "contributors to one reduction name different reducers" in ended.stderr, ended.stderr
