"""Aggregated calls: many small calls that travel in bundles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

from .conftest import RunJob


@pytest.mark.parametrize("ways", [(1,), (3,), (4, "grid")])
@pytest.mark.parametrize(
    "what",
    ["order", "arguments", "large", "large_objects", "changes", "idle", "quiescence", "refusals", "threads"],
)
def test_aggregated_calls(expect_success: Callable[..., str], ways: tuple[Any, ...], what: str) -> None:
    num_pes, *grid = ways
    assert "all checked" in expect_success(num_pes, "aggregated_calls.py", what, *grid)


@pytest.mark.parametrize("ways", [(2,), (4,), (5, "grid")])
def test_no_call_is_lost_while_chares_move(expect_success: Callable[..., str], ways: tuple[Any, ...]) -> None:
    num_pes, *grid = ways
    assert "all checked" in expect_success(num_pes, "aggregated_calls.py", "moves", *grid)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_an_exception_ends_the_job_in_words(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "aggregated_calls.py", "failing")
    assert ended.returncode == 1
    for words in ("Log[9].fail", "ValueError: a mistake"):
        assert words in ended.stderr, ended.stderr


def test_an_await_waits_for_room_at_the_pe_in_between(
    expect_success: Callable[..., str], tmp_path: Path
) -> None:
    assert "all checked" in expect_success(6, "aggregated_room.py", str(tmp_path / "go"))


class Taker(weft.Chare):
    def __init__(self) -> None:
        self.got: list[object] = []

    def take(self, *values: object) -> None:
        self.got.append(values)

    def taken(self) -> list[object]:
        return self.got


_VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=600),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(_VALUES, max_size=4).map(tuple)), max_size=20))
def test_arguments_arrive_as_they_were(calls: list[tuple[int, tuple[object, ...]]]) -> None:
    arrived: list[list[object]] = []

    async def main() -> None:
        takers = weft.Array(Taker, 3)
        many = takers.aggregated()
        for element, values in calls:
            many.take(element, *values)
        await weft.quiescence()
        arrived.extend(await takers.taken.call())

    weft.run(main)
    expected: list[list[object]] = [[], [], []]
    for element, values in calls:
        expected[element].append(values)
    # A call with more than 1 KiB of arguments travels alone.
    assert [sorted(map(repr, one)) for one in arrived] == [sorted(map(repr, one)) for one in expected]
