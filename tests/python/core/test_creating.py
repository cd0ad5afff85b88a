"""Creations that are awaited."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["ready", "raises", "later"])
def test_creating(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "creating.py", mode)


@pytest.mark.parametrize("mode", ["unawaited", "dropped"])
@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_constructor_that_nothing_awaits_ends_the_job(run_job: RunJob, num_pes: int, mode: str) -> None:
    ended = run_job(num_pes, "creating.py", mode)
    assert ended.returncode == 1
    for word in (
        f"the constructor of Picky[9] on PE {num_pes - 1}",
        "ValueError",
        "no element 9",
        "creating.py",
    ):
        assert word in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["ready", "raises", "several", "destroyed", "forms", "saved", "sparse"])
def test_the_created_hook(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "created_hook.py", mode)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_indices_of_a_type_of_the_program(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "own_indices.py")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_created_hook_that_nothing_awaits_ends_the_job(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "created_hook.py", "unawaited")
    assert ended.returncode == 1
    for word in (f"created() of Block[6] on PE {num_pes - 1}", "ValueError", "no block 6", "created_hook.py"):
        assert word in ended.stderr, ended.stderr
    assert run_job(num_pes, "created_hook.py", "exits").returncode == 3


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["ready", "raises", "first", "destroyed", "sparse", "saved", "leaves"])
def test_constructors_that_are_coroutines(run_job: RunJob, mode: str, num_pes: int) -> None:
    ended = run_job(num_pes, "coroutine_constructors.py", mode)
    assert ended.returncode == 0 and "all checked" in ended.stdout, ended.stdout + ended.stderr
    assert "never awaited" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_coroutine_constructor_that_nothing_awaits_ends_the_job(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "coroutine_constructors.py", "unawaited")
    assert ended.returncode == 1
    for word in (f"the constructor of Block[6] on PE {num_pes - 1}", "ValueError", "no block 6"):
        assert word in ended.stderr, ended.stderr
    assert run_job(num_pes, "coroutine_constructors.py", "exits").returncode == 3


@pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython specializes instructions from 3.11 on")
def test_attributes_of_chares_are_as_fast_as_those_of_other_objects(
    expect_success: Callable[..., str],
) -> None:
    assert "all checked" in expect_success(1, "attributes.py")
