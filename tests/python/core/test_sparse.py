"""Sparse arrays: elements that are inserted and removed one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 4])
@pytest.mark.parametrize("which", ["elements", "sets", "refused"])
def test_sparse_arrays(expect_success: Callable[..., str], num_pes: int, which: str) -> None:
    assert "all checked" in expect_success(num_pes, "sparse.py", which)


@pytest.mark.parametrize("num_pes", [2, 3])
def test_no_call_is_lost_or_doubled_under_random_changes(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert "all checked" in expect_success(num_pes, "sparse.py", "traffic")


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("insertion", ["the insertion of Cell[3]", "no negative value"]),
        ("removal", ["the removal of Cell[3]", "does not exist"]),
        ("call", ["a call of Cell[3].get from PE 0 finds no element", "Insert it before the call"]),
    ],
)
def test_a_failure_that_nothing_awaits_ends_the_job(run_job: RunJob, which: str, words: list[str]) -> None:
    ended = run_job(2, "sparse.py", "unawaited", which)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr, ended.stderr
