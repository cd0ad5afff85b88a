"""Reductions in Python: what they take and where the results go, and what ends the job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize(
    "program",
    ["bound_targets.py", "empty_reductions.py", "kept_types.py", "list_reductions.py", "reductions.py"],
)
def test_reductions(expect_success: Callable[..., str], program: str, num_pes: int) -> None:
    assert expect_success(num_pes, program) == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2, 3, 4])
def test_large_arrays(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "large_reductions.py") == "all checked\n"


ORDERED = {"WEFT_ORDERED_REDUCTIONS": "1"}


@pytest.mark.parametrize("num_pes", [1, 2, 3, 4])
def test_ordered_reductions_have_the_bits_of_the_elements_order(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert expect_success(num_pes, "ordered_reductions.py", environment=ORDERED) == "all checked\n"


@pytest.mark.parametrize("program", ["reductions.py", "empty_reductions.py", "kept_types.py"])
def test_ordered_reductions_give_what_others_give(expect_success: Callable[..., str], program: str) -> None:
    assert expect_success(3, program, environment=ORDERED) == "all checked\n"


@pytest.mark.parametrize(("end", "code"), [("raise", 1), ("exit", 6)])
@pytest.mark.parametrize("reduction", ["group", "section"])
def test_a_reducer_that_fails_in_an_ordered_reduction_ends_the_job(
    run_job: RunJob, reduction: str, end: str, code: int
) -> None:
    ended = run_job(2, "reducer_ends_job.py", reduction, end, environment=ORDERED)
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stdout + ended.stderr
    assert end == "exit" or "a rank has no value" in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("lengths", ["a list of 2 elements", "a list of 1 elements", "same type and length"]),
        ("codes", ["type code 'd'", "type code 'f'", "same type and length"]),
        ("kinds", ["a list of 1 elements", "type code 'q'"]),
        ("number", ["a list of 1 elements", "a value of type int"]),
        ("overflow", ["OverflowError"]),
    ],
)
def test_lists_that_do_not_fit_end_the_job(
    run_job: RunJob, mode: str, words: list[str], num_pes: int
) -> None:
    ended = run_job(num_pes, "list_reductions.py", mode)
    assert ended.returncode == 1
    for word in (*words, "in the reducer weft.Reducer.sum of a reduction of Part on PE"):
        assert word in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_value_from_some_elements_only_ends_the_job(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "empty_reductions.py", "mixed")
    assert ended.returncode == 1
    assert "contributors to one reduction name different reducers" in ended.stderr, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_targets_of_quiescence(expect_success: Callable[..., str], num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "quiescence_targets.py")
