"""Load-balancing strategies as Python functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable

import pytest

import weft
from weft import load_balancing

from .conftest import RunJob, program_path


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_a_function_decides(expect_success: Callable[..., str], num_pes: int) -> None:
    ended = expect_success(num_pes, "strategies.py", environment={"WEFT_LB": "heaviest_first"})
    assert "all checked" in ended
    times = ast.literal_eval(ended.splitlines()[0].removeprefix("times "))
    assert sum(times) == 78
    assert max(times) <= 78 / num_pes + 1


def test_an_array_is_a_list_of_pes(expect_success: Callable[..., str]) -> None:
    ended = expect_success(3, "strategies.py", environment={"WEFT_LB": "as_array"})
    # The first three objects have joined those of the last PE, 9 to 12.
    assert ended.splitlines() == ["times [4, 26, 48]", "all checked"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("short", ["it has returned 11 for 12 objects"]),
        ("no_such_pe", ["is wrong: a placement puts object 11 of collection", "on PE 2; expected 0 to 1"]),
        ("huge", ["the PE of object number 11 in the list is 1180591620717411303424"]),
        ("moves_pinned", ["is wrong: a placement moves object 3 of collection", "it cannot move"]),
        ("raises", ["LookupError: the tables are missing", "strategies.py", "in raises"]),
        ("no_list", ["a list of integers; it has returned the NoneType None"]),
        ("of_floats", ["a list of integers; it has returned the list [0.0, 0.0,"]),
    ],
)
def test_a_wrong_decision_ends_the_job(run_job: RunJob, name: str, words: list[str]) -> None:
    ended = run_job(2, "strategies.py", environment={"WEFT_LB": name})
    assert ended.returncode == 1
    for word in ["PE 0: ", f"the load-balancing strategy '{name}' in step 1 of Block", *words]:
        assert word in ended.stderr, ended.stderr


def test_an_exit_ends_the_job_with_its_code(run_job: RunJob) -> None:
    ended = run_job(2, "strategies.py", environment={"WEFT_LB": "exits"})
    assert ended.returncode == 3, ended.stderr
    assert "strategy" not in ended.stderr


def test_weft_run_takes_the_name() -> None:
    command = ["-m", "weft", "run", "-n", "2", "--lb", "heaviest_first", "--lb-verbose"]
    ended = subprocess.run(
        [sys.executable, *command, str(program_path("strategies.py"))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "weft: load balancing of Block, step 2: heaviest_first, imbalance" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_name_that_is_not_registered_is_refused_when_the_job_starts(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "strategies.py", environment={"WEFT_LB": "lightest_first"})
    assert ended.returncode != 0
    assert "WEFT_LB is 'lightest_first'" in ended.stderr
    assert "greedy_refine" in ended.stderr
    assert "heaviest_first" in ended.stderr
    assert "@weft.load_balancing.strategy" in ended.stderr


def stay(snapshot: load_balancing.Snapshot) -> list[int]:
    return snapshot.pes()


def test_names_and_functions_are_checked() -> None:
    for name in ["", "two words", "a" * 65, "file.py:place"]:
        with pytest.raises(weft.Error, match="letters, digits and underscores"):
            load_balancing.register(name, stay)
    with pytest.raises(weft.Error, match="Weft has a strategy of this name"):
        load_balancing.register("greedy", stay)
    with pytest.raises(weft.Error, match="which cannot be called"):
        load_balancing.register("nothing", None)  # type: ignore[arg-type]
    with pytest.raises(weft.Error, match=r'write @weft.load_balancing.strategy\("name"\)'):
        load_balancing.register(stay, stay)  # type: ignore[arg-type]
    with pytest.raises(weft.Error, match="the name of a load-balancing strategy is a str"):
        load_balancing.strategy(stay)  # type: ignore[arg-type]


def test_a_name_is_given_once_but_a_module_may_be_loaded_twice(expect_success: Callable[..., str]) -> None:
    assert "all checked" in expect_success(1, "registering.py")  # in a process of its own
