"""How jobs fail: exit codes, and what stderr says."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from .conftest import TIMEOUT_S, RunJob, program_path

UNAWAITED = [
    ("unawaited", ["PE 1", "Worker[3].divide", "ZeroDivisionError", "failing.py", "return 1 / x"]),
    ("coroutine", ["PE 1", "Worker[3].later", "ValueError: too late"]),
    ("dropped_call", ["Worker[3].divide on PE 1", "ZeroDivisionError", "was not awaited"]),
    ("main", ["in main", "ValueError: from main"]),
    ("constructor", ["Fragile[3] on PE 1", "OverflowError: no element 3"]),
    ("shared", ["the constructor of Shared[", "Shared.__new__ must return the object"]),
    ("mismatch", ["Worker[1]", "Worker[0]", "80 bytes", "40 bytes"]),
    ("uneven", ["in the reducer weft.Reducer.sum of a reduction of Worker on PE", "shapes", "(3,)", "(4,)"]),
    (
        "reducer",
        [
            "in the reducer weft.Reducer.custom(__main__:raise_reducing) of a reduction of Worker on PE",
            "in Worker[",
            "KeyError: 'no such key'",
        ],
    ),
    ("forgotten_await", ["the result of Worker[3].forgets_await", "did you forget `await`?"]),
    ("unsendable_result", ["the result of Worker[3].unsendable", "cannot be sent"]),
    ("foreign", ["awaited a str", "asyncio_future"]),
    ("only_here", ["OnlyHere", "PE 1", "every PE runs the script"]),
    ("callback", ["callback of a future", "ZeroDivisionError"]),
]


@pytest.mark.parametrize(("mode", "words"), UNAWAITED, ids=[mode for mode, _ in UNAWAITED])
def test_what_nobody_awaits_ends_the_job(run_job: RunJob, mode: str, words: list[str]) -> None:
    ended = run_job(2, "failing.py", mode)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize(
    ("mode", "word"),
    [("future", "ZeroDivisionError"), ("collected", "ZeroDivisionError"), ("operation", "80")],
)
def test_what_another_thread_drops_while_the_pe_sleeps(
    run_job: RunJob, mode: str, word: str, num_pes: int
) -> None:
    ended = run_job(num_pes, "dropped_elsewhere.py", mode)  # without the wake-up it sleeps for ever
    assert ended.returncode == 1
    assert word in ended.stderr


@pytest.mark.parametrize("mode", ["unawaited", "main", "constructor"])
def test_without_a_launcher(run_job: RunJob, mode: str) -> None:
    ended = run_job(1, "failing.py", mode)
    assert ended.returncode == 1
    assert ("main" if mode == "main" else "PE 0") in ended.stderr


@pytest.mark.parametrize("mode", ["awaited", "gathered", "at_once"])
@pytest.mark.parametrize("num_pes", [1, 2])
def test_exceptions_travel_to_who_awaits_them(run_job: RunJob, mode: str, num_pes: int) -> None:
    ended = run_job(num_pes, "failing.py", mode)
    assert (ended.returncode, ended.stdout) == (0, "caught\n"), ended.stderr


@pytest.mark.parametrize(("mode", "code"), [("exit", 5), ("system_exit", 7), ("exit_in_constructor", 3)])
@pytest.mark.parametrize("num_pes", [1, 3])
def test_exit_codes(run_job: RunJob, mode: str, code: int, num_pes: int) -> None:
    assert run_job(num_pes, "failing.py", mode).returncode == code


def test_output_is_not_lost(run_job: RunJob) -> None:
    ended = run_job(2, "failing.py", "printed")
    assert ended.returncode == 1
    # Lines of two PEs may run into one another.
    assert [ended.stdout.count(f"PE {pe} printed this") for pe in (0, 1)] == [2, 2]


def test_a_chare_whose_constructor_raised_was_not_made(run_job: RunJob) -> None:
    ended = run_job(1, "failing.py", "kept")
    assert ended.returncode == 1
    assert ended.stdout == "this chare was not made: its constructor raised an exception\n"
    assert "ValueError: not 0" in ended.stderr


@pytest.mark.parametrize("mode", ["asleep", "busy"])
def test_ctrl_c(mode: str) -> None:
    with subprocess.Popen(
        [sys.executable, str(program_path("failing.py")), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "asleep\n"
        job.send_signal(signal.SIGINT)
        _, errors = job.communicate(timeout=TIMEOUT_S)
    assert job.returncode in (130, -signal.SIGINT)
    assert "KeyboardInterrupt" in errors


@pytest.mark.parametrize("num_pes", [2, 3, 4])
@pytest.mark.parametrize(("end", "code"), [("raise", 1), ("exit", 6)])
@pytest.mark.parametrize("reduction", ["allreduce", "reduce", "group", "section"])
def test_a_reducer_that_ends_the_job_leaves_no_result(
    run_job: RunJob, reduction: str, end: str, code: int, num_pes: int
) -> None:
    ended = run_job(num_pes, "reducer_ends_job.py", reduction, end)
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stdout + ended.stderr
    if end == "raise":
        assert "in the reducer weft.Reducer.custom(__main__:most) " in ended.stderr, ended.stderr
        assert "a rank has no value" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_texts_with_surrogates_are_shown(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "odd_texts.py")
    assert ended.returncode == 1
    assert "AssertionError" not in ended.stderr, ended.stderr
    assert "ValueError: no file caf\\udce9" in ended.stderr, ended.stderr
