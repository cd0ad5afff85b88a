"""Futures of several values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_collecting_futures(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "collecting_futures.py") == "all checked\n"


def test_a_value_too_many_of_another_pe_ends_the_job(run_job: RunJob) -> None:
    ended = run_job(2, "collecting_futures.py", "too many")
    assert ended.returncode == 1
    assert "PE 1 set a future of PE 0 that was set before" in ended.stderr, ended.stderr
