"""Futures in chares that move."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_values_reach_the_chare_where_it_is(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "moving_futures.py", "values")


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_every_way_to_wait(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "moving_futures.py", "waiting")


@pytest.mark.parametrize("num_pes", [2, 3, 4])
def test_nothing_is_lost_under_random_traffic(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "moving_futures.py", "random")


@pytest.mark.parametrize("num_pes", [1, 3])
@pytest.mark.parametrize("how", ["plain", "deepcopy", "pickled", "nested"])
def test_copies_and_nested_ones(expect_success: Callable[..., str], how: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "moving_copies.py", how)


@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_device_arrays(
    expect_success: Callable[..., str], need_gpus: Callable[[int], None], kind: str
) -> None:
    if kind == "cuda":
        need_gpus(1)
    assert "all checked" in expect_success(2, "moving_futures.py", "device", kind)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("unobserved", ["Hand[0].answer", "PE 1: an exception", "whose result was not awaited", "KeyError"]),
        ("twice", ["PE 1 set a future of PE 0 that was set before, by PE 0 (failing, moving_futures.py:"]),
        ("value", ["the state of Keeper[0] on PE 0", "cannot be sent", "lock"]),
    ],
)
def test_what_ends_the_job(run_job: RunJob, case: str, words: list[str]) -> None:
    ended = run_job(2, "moving_futures.py", "failing", case)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr, ended.stderr
