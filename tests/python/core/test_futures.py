"""Futures: of several values, the values that they get, and what a set too many says."""

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


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("program", ["future_values.py", "set_twice.py"])
def test_setting(expect_success: Callable[..., str], program: str, num_pes: int) -> None:
    assert expect_success(num_pes, program) == "all checked\n"


@pytest.mark.parametrize("setter", [0, 1])
def test_a_second_set_from_afar_names_the_first_one(run_job: RunJob, setter: int) -> None:
    ended = run_job(2, "set_twice.py", "far", str(setter))
    assert ended.returncode == 1
    first = f"PE 1 set a future of PE 0 that was set before, by Setter[{setter}] on PE {setter} ("
    assert first in ended.stderr, ended.stderr
    assert "set_it, set_twice.py:" in ended.stderr, ended.stderr
