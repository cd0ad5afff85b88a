"""Coroutines of a PE beside one another: their contexts, what they leave, and how they wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2])
def test_contexts(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "contexts.py")
    assert (ended.returncode, ended.stdout) == (0, "all checked\n"), ended.stderr
    assert "Exception ignored" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("mode", ["left", "collected", "at_the_end"])
def test_left_generators(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert expect_success(num_pes, "left_generators.py", mode) == "all checked\n"


def test_what_the_end_of_a_left_generator_raises_ends_the_job(run_job: RunJob) -> None:
    ended = run_job(2, "left_generators.py", "raising")
    assert ended.returncode == 1
    for word in ("an asynchronous generator that was left before its end", "PE 0", "KeyError", "in finally"):
        assert word in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_released_timers(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "released_timers.py") == "all checked\n"
