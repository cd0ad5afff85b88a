"""Conditions of entry methods: weft.when."""

from __future__ import annotations

import dis
import functools
import inspect
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft._chare.conditions import _IGNORED, analyse
from weft._chare.when import _MARK

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2])
def test_calls_run_in_the_order_that_their_conditions_give(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    assert "all checked" in expect_success(num_pes, "conditions.py", "order", str(seed))


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize(
    "mode",
    [
        "arguments",
        "coroutines",
        "raising",
        "collective",
        "flood",
        "many",
        "equalities",
        "destroying",
        "misplaced",
    ],
)
def test_waiting_calls(expect_success: Callable[..., str], num_pes: int, mode: str) -> None:
    assert "all checked" in expect_success(num_pes, "conditions.py", mode)


@pytest.mark.parametrize("num_pes", [2, 3])
@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_waiting_calls_move_with_their_chare(
    expect_success: Callable[..., str], need_gpus: Callable[[int], None], num_pes: int, kind: str
) -> None:
    if kind == "cuda":
        need_gpus(1)
    assert "all checked" in expect_success(num_pes, "conditions.py", "moving", kind)


def test_load_balancing_moves_waiting_calls(expect_success: Callable[..., str]) -> None:
    printed = expect_success(2, "conditions.py", "balancing", environment={"WEFT_LB": "rotate"})
    assert "all checked" in printed


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_checkpoint_is_refused_while_calls_wait(
    expect_success: Callable[..., str], tmp_path: Path, num_pes: int
) -> None:
    assert "all checked" in expect_success(num_pes, "conditions.py", "checkpoint", str(tmp_path / "saved"))


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("unawaited", ["ZeroDivisionError", "limited (its condition)"]),
        ("destroyed", ["Purse[", ".spend still waits for its condition", "has been destroyed"]),
    ],
)
def test_what_nothing_awaits_ends_the_job(run_job: RunJob, num_pes: int, how: str, words: list[str]) -> None:
    ended = run_job(num_pes, "conditions.py", "failing", how)
    assert ended.returncode == 1, ended.stdout
    for word in words:
        assert word in ended.stderr, ended.stderr


# --- What is found out about a condition


class State:
    """A chare, as far as conditions read it."""

    def __init__(self, first: Any, second: Any = 0) -> None:
        self.first = first
        self.second = second
        self.inner = types.SimpleNamespace(step=first)


@pytest.mark.parametrize(
    ("condition", "reads"),
    [
        (lambda self, number: number == self.first, 1),
        (lambda self, number: self.first == number, 1),
        (lambda self, number: self.inner.step == number, 1),
        (lambda self, number: number == self.first and self.second < 3, 2),
        (lambda self, number: number == self.first and self.second < 3 and not self.inner.step, 3),
        (lambda chare, number, limit=3: chare.first == number and chare.second < limit, 2),
        (lambda self, *, number: number == self.first, 1),
        (lambda self, number: number == self.first and is_one(self.second), None),
    ],
)
def test_an_equality_of_chare_and_call_is_found(condition: Callable[..., bool], reads: int | None) -> None:
    found = analyse(condition)
    assert found.chare_key is not None and found.call_key == "number"
    assert found.chare_key(State(7, 8)) == 7
    assert reads == (None if found.reads is None else len(found.reads))


@pytest.mark.parametrize(
    ("condition", "reads"),
    [
        (lambda self, number: number <= self.first, (7,)),
        (lambda self: self.first and not self.inner.step, (7, 7)),
        (lambda self, number: number == self.first or self.second, (7, 8)),
        (lambda self, number: not (number == self.first and self.second), (7, 8)),
        (lambda self, number: number == self.first < self.second, (7, 8)),
        (lambda self, number: number == self.first if self.second else True, (8, 7)),
        (lambda self, number: self.second < 3 and number == self.first, (8, 7)),
        (lambda self, number: number + 1 == self.first, (7,)),
        (lambda self, number: (number == self.first) + 1, (7,)),
        (lambda self, number: number != self.first, (7,)),
        (lambda self, number: self.first is None or self.first is number, (7, 7)),
        (lambda self, number: number in self.first, (7,)),
        (lambda self, number: self.first[number] % 2 / self.second, (7, 8)),
        (lambda self, number: number == 3, ()),
        (lambda self: self.first == 3, (7,)),
        (lambda self: self.first == self.second, (7, 8)),
    ],
)
def test_what_a_condition_reads_is_found(condition: Callable[..., bool], reads: tuple[int, ...]) -> None:
    found = analyse(condition)
    assert found.chare_key is None and found.call_key is None and found.reads is not None
    assert tuple(read(State(7, 8)) for read in found.reads) == reads


def is_one(value: int) -> bool:
    return value == 1


@pytest.mark.parametrize(
    "condition",
    [
        lambda self, number: is_one(self.first),
        lambda self, number: len(self.first) == number,
        lambda self, number: number in State(self).first,
        lambda self, number: self == number,
        lambda self, number: number.step < self.first,
        lambda self, number: (lambda: number)() == self.first,
        lambda self, number, seen=[]: number <= self.first or seen,
        functools.partial(lambda self, number: number == self.first),
        functools.wraps(lambda self: self.first == 1)(lambda *values: values[0].first == 1),
    ],
)
def test_a_condition_that_may_depend_on_more_is_asked_each_time(condition: Callable[..., bool]) -> None:
    assert analyse(condition) == (None, None, None)


def test_code_that_is_not_known_is_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of another version of Python may be."""

    def condition(self: Any, number: int) -> bool:
        return bool(number == self.first)

    def equality(self: Any, number: int) -> bool:
        return number == self.first  # type: ignore[no-any-return]

    assert analyse(condition) == (None, None, None) and analyse(equality).call_key == "number"
    known = list(dis.get_instructions(equality))
    for i in range(len(known)):
        steps = [*known[:i], known[i]._replace(opname="SOMETHING_NEW"), *known[i + 1 :]]
        if known[i].opname in _IGNORED:
            continue
        monkeypatch.setattr(dis, "get_instructions", lambda _, steps=steps: steps)
        assert analyse(equality) == (None, None, None)


# --- The decorator


def method(
    self: Any, first: int, /, second: int, third: int = 3, *rest: int, named: int = 4, **more: int
) -> None:
    """What the conditions of the tests belong to."""


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (lambda: True, "needs the chare as its first parameter"),
        (lambda *everything: True, "needs the chare as its first parameter"),
        (lambda *, self: True, "needs the chare as its first parameter"),
        (lambda self, missing: True, "has the parameter missing, which the method does not have"),
        (lambda self, rest: True, "has the parameter rest"),
        (lambda self, more: True, "has the parameter more"),
        (lambda self, *rest: True, r"its parameter \*rest cannot"),
        (lambda self, **more: True, r"its parameter \*\*more cannot"),
        ("self.iteration == iteration", "weft.when takes a function"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused(condition: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        weft.when(condition)(method)


def test_a_coroutine_is_no_condition() -> None:
    async def condition(self: Any) -> bool:
        return True

    with pytest.raises(TypeError, match="a condition cannot wait"):
        weft.when(condition)


def test_what_cannot_have_a_condition() -> None:
    with pytest.raises(TypeError, match="decorates a method of a chare"):
        weft.when(lambda self: True)(staticmethod(method))
    once = weft.when(lambda self: True)(_copy_of_method())
    with pytest.raises(TypeError, match="has two conditions"):
        weft.when(lambda self: True)(once)


def _copy_of_method() -> Callable[..., None]:
    @functools.wraps(method)
    def copy(*args: int, **kwargs: int) -> None: ...

    return copy


def test_a_condition_names_any_of_the_parameters() -> None:
    marked = weft.when(lambda self, named, third, second, first, other=7: True)(_copy_of_method())
    assert getattr(marked, _MARK)[1] == (
        ("named", -1, True, 4),
        ("third", 3, True, 3),
        ("second", 2, False, None),
        ("first", 1, False, None),
    )


@given(
    st.lists(st.integers(), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["second", "third", "named"]), st.integers()),
)
def test_the_positions_are_those_that_python_binds(positional: list[int], named: dict[str, int]) -> None:
    """What the extension looks up by position, then by name, then as default, is what the method gets."""
    try:
        bound = inspect.signature(method).bind(None, *positional, **named)
    except TypeError:
        return  # the method itself says so
    bound.apply_defaults()
    marked = weft.when(lambda self, first, second, third, named: True)(_copy_of_method())
    values = [None, *positional]
    for name, position, has_default, default in getattr(marked, _MARK)[1]:
        if 0 <= position < len(values):
            found = values[position]
        else:
            assert name in named or has_default
            found = named.get(name, default)
        assert found == bound.arguments[name]
