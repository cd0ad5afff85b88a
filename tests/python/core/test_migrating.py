"""Chares that move to another PE."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 4])
def test_the_state_moves(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "migrating.py", "state")


@pytest.mark.parametrize("num_pes", [1, 2])
def test_what_cannot_move_says_why(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "migrating.py", "refused")


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_a_move_waits_for_large_arguments_that_land(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "migrating.py", "landing")


@pytest.mark.parametrize("num_pes", [2, 3, 4])
def test_no_call_is_lost_or_doubled_under_random_traffic(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert "all checked" in expect_success(num_pes, "migrating.py", "traffic")


@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_device_arrays_move_with_their_chare(
    expect_success: Callable[..., str], need_gpus: Callable[[int], None], kind: str
) -> None:
    if kind == "cuda":
        need_gpus(1)
    assert "all checked" in expect_success(2, "migrating.py", "device", kind)


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("unpicklable", ["the state of Unpicklable[0] on PE 0", "cannot be sent", "lambda"]),
        ("raising", ["Raising[0] on PE 1", "migrated()", "no place here"]),
    ],
)
def test_a_move_that_fails_ends_the_job(run_job: RunJob, which: str, words: list[str]) -> None:
    ended = run_job(2, "migrating.py", "failing", which)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_states_that_name_their_chare_move(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "state_obstacles.py") == "all checked\n"


@pytest.mark.parametrize(
    ("what", "place"),
    [
        ("lambda", "obstacle['name'],"),
        ("lock", "obstacle[1]['at'][0],"),
        ("file", "obstacle,"),
        ("generator", "obstacle,"),
        ("object", "obstacle.inner['deep'],"),
        ("module", "obstacle,"),
        ("nested", "obstacle,"),
    ],
)
def test_a_state_that_cannot_move_names_the_attribute(run_job: RunJob, what: str, place: str) -> None:
    ended = run_job(2, "state_obstacles.py", what)
    assert ended.returncode == 1
    words = f"the state of Holder[0] on PE 0, in its attribute {place} cannot be sent"
    assert words in ended.stderr, ended.stderr
