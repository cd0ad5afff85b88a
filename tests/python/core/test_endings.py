"""How jobs end: an ordinary function as main, forked children, closed streams, what other threads drop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_job_in_which_nothing_can_happen_ends_with_a_sentence(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "plain_main.py", "silent")
    assert ended.returncode == 1
    assert "weft.exit() was not called" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("mode", ["at_once", "messages", "timers", "inside_asyncio", "thread", "importing"])
def test_an_ordinary_main_waits_for_exit(run_job: RunJob, mode: str, num_pes: int) -> None:
    ended = run_job(num_pes, "plain_main.py", mode)
    assert ended.returncode == 7, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["target", "then", "awaited", "timeouts"])
def test_a_program_of_an_ordinary_main_may_wait_for_quiescence(
    run_job: RunJob, mode: str, num_pes: int
) -> None:
    ended = run_job(num_pes, "plain_main.py", mode)
    assert ended.returncode == 7, ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_a_program_of_an_ordinary_main_may_save_checkpoints(
    run_job: RunJob, tmp_path: Path, num_pes: int
) -> None:
    ended = run_job(num_pes, "plain_main.py", "checkpoint", str(tmp_path / "saved"))
    assert ended.returncode == 7, ended.stderr


@pytest.mark.parametrize("mode", ["generator", "async_generator"])
def test_a_generator_is_no_main(run_job: RunJob, mode: str) -> None:
    ended = run_job(1, "plain_main.py", mode)
    assert ended.returncode == 1
    assert f"main, {mode}, is a generator function" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_forked_child_has_no_job(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "forking.py") == "all checked\n"


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("mode", ["exit_in_callback", "exit_in_posted", "exit_in_reducer"])
def test_system_exit_ends_the_job_with_its_code(run_job: RunJob, mode: str, num_pes: int) -> None:
    ended = run_job(num_pes, "failing.py", mode)
    assert (ended.returncode, ended.stderr) == (9, "")


@pytest.mark.parametrize("mode", ["close", "close_both", "none"])
def test_a_program_may_close_its_streams(run_job: RunJob, mode: str) -> None:
    ended = run_job(1, "closing_stdout.py", mode)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("future", "an exception without an awaiting caller"),
        ("operation", "an operation that is not awaited failed"),
    ],
)
def test_a_failure_that_another_thread_drops_ends_a_sleeping_job(
    run_job: RunJob, mode: str, problem: str
) -> None:
    ended = run_job(1, "dropped_failures.py", mode)
    assert ended.returncode == 1
    assert problem in ended.stderr
