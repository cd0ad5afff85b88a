"""weft.Pool: functions over the PEs of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("num_pes", [1, 2, 4])
@pytest.mark.parametrize("mode", ["results", "equals_map", "balance", "failures", "nested", "closing"])
def test_pool(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "pool.py", mode)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_tasks_share_nothing_and_a_closed_pool_leaves_nothing(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert expect_success(num_pes, "pool_values.py") == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_failure_that_nothing_awaits_ends_the_job(run_job: Callable[..., Any], num_pes: int) -> None:
    ended = run_job(num_pes, "pool.py", "dropped")
    assert ended.returncode == 1
    assert "map(partial), whose result was not awaited" in ended.stderr
    assert "ValueError: no 2" in ended.stderr


def test_outside_of_a_job() -> None:
    import weft

    with pytest.raises(weft.Error, match="no job"):
        weft.Pool()


def test_what_tasks_ask_for_comes_first() -> None:
    """The newest before the others, two per PE in a row; what others ask for is served in order."""
    from weft._pool.members import Slots

    slots = Slots([1], home_pe=0)
    served: list[str] = []
    tokens: list[int] = []
    for is_nested, name in [(False, "a"), (False, "b"), (True, "c"), (True, "d"), (False, "e"), (True, "f")]:

        def granted(token: int, pe: int, name: str = name) -> None:
            assert pe == 1
            served.append(name)
            tokens.append(token)

        slots.take(False, is_nested, granted)
    assert served == ["a"]
    while len(served) < 6:
        slots.give(tokens[-1])
    assert served == ["a", "f", "d", "b", "c", "e"]


@pytest.mark.parametrize("num_pes", [1, 3])
def test_tasks_that_ask_again_and_again_do_not_keep_others_waiting(num_pes: int) -> None:
    from weft._pool.members import Slots

    slots = Slots(range(1, num_pes + 1), home_pe=0)
    served: list[str] = []
    held: list[int] = []

    def nested(token: int, pe: int) -> None:
        served.append("nested")
        held.append(token)
        slots.take(False, True, nested)

    def other(token: int, pe: int) -> None:
        served.append("other")
        held.append(token)

    slots.take(False, True, nested)
    for _ in range(3):
        slots.take(False, False, other)
    most = 2 * num_pes  # of tasks, in a row
    while len(served) < 5 * (most + 1):
        slots.give(held.pop(0))
    others = [number for number, name in enumerate(served) if name == "other"]
    assert others == [most, 2 * most + 1, 3 * most + 2]
