"""Exceptions: their types on other PEs, those of main, signals, and results that nothing reads."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from .conftest import TIMEOUT_S, RunJob, program_environment, program_path


@pytest.mark.parametrize("num_pes", [1, 2])
def test_an_exception_keeps_its_type(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "remote_types.py") == "all checked\n"


@pytest.mark.parametrize("mode", ["coroutine", "plain"])
@pytest.mark.parametrize("num_pes", [1, 3])
def test_weft_run_raises_what_main_raises(run_job: RunJob, mode: str, num_pes: int) -> None:
    ended = run_job(num_pes, "main_raises.py", mode)
    assert ended.returncode == 1
    assert sorted(ended.stdout.splitlines()) == ["SystemExit 1"] * (num_pes - 1) + ["caught"]
    assert ended.stderr.count("Traceback") == ended.stderr.count("ValueError: boom") == 1, ended.stderr


def test_a_program_may_catch_what_main_raises(run_job: RunJob) -> None:
    ended = run_job(1, "main_raises.py", "caught")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "caught\n", "")
    ended = run_job(2, "main_raises.py", "caught")
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_rank_that_raises_ends_the_job(run_job: RunJob) -> None:
    ended = run_job(3, "main_raises.py", "ranks")
    assert ended.returncode == 1
    assert sorted(ended.stdout.splitlines()) == ["SystemExit 1"] * 2 + ["caught"]
    assert ended.stderr.count("Traceback") == 1, ended.stderr


def test_main_raises_while_another_pe_computes(run_job: RunJob) -> None:
    ended = run_job(2, "main_raises.py", "busy")
    assert ended.returncode == 1
    assert "main on PE 0 raised a ValueError, and other PEs have not ended within" in ended.stderr
    assert "caught" in ended.stdout and "in main" in ended.stderr, ended.stderr


# `weft run`, whose PEs have more time to clean up: they may wait for their cores.
PATIENT = (
    "from weft import cli\nfrom weft.launch import job\njob.CLEANUP_S = 50.0\nraise SystemExit(cli.main())"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("mode", ["asleep", "busy"])
@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_program_cleans_up_after_a_signal(mode: str, number: signal.Signals, num_pes: int) -> None:
    launcher = [] if num_pes == 1 else ["-c", PATIENT, "run", "-n", str(num_pes)]
    with subprocess.Popen(
        [sys.executable, *launcher, str(program_path("signalled.py")), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program_environment(),
    ) as job:
        assert job.stdout is not None
        began = sorted(job.stdout.readline() for _ in range(num_pes))
        assert began == [f"PE {pe}: runs\n" for pe in range(num_pes)]
        job.send_signal(number)
        output, errors = job.communicate(timeout=TIMEOUT_S)
    end = "was interrupted" if number == signal.SIGINT else "was told to exit with 143"
    lines = output.splitlines()
    for pe in range(num_pes):
        said = [line for line in lines if line.startswith(f"PE {pe}: ")]
        assert said == [f"PE {pe}: {what}" for what in ("left its method", end, "cleans up", "exits")], lines
    assert job.returncode in (128 + number, -number)
    if num_pes > 1:
        assert [line.partition(":")[0] for line in errors.splitlines()] == ["weft run"] * 2, errors


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_future_says_what_it_is_of(run_job: RunJob, num_pes: int) -> None:
    ended = run_job(num_pes, "forgotten.py", "looked_at")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "all checked\n", ""), ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("mode", ["fail", "fail_all", "fail_elsewhere", "kept"])
def test_the_exception_of_a_forgotten_call_ends_the_job(run_job: RunJob, mode: str, num_pes: int) -> None:
    ended = run_job(num_pes, "forgotten.py", mode)
    assert ended.returncode == 1
    assert "ValueError: lost" in ended.stderr and "was not awaited" in ended.stderr, ended.stderr


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (
            "work",
            "has not awaited 4 futures that it has made, such as of Worker[1].work, Worker.work;",
        ),
        ("never", "PE 0: the program has not awaited 1 future that it has made, such as of Worker[1].never"),
        (
            "elsewhere",
            "PE 1: the program has not awaited 1 future that it has made, such as of Worker[0].work",
        ),
        ("sleep", "PE 0: the program has not awaited 1 future that it has made, such as of weft.sleep"),
        ("coroutine", "RuntimeWarning: coroutine 'helper' was never awaited"),
    ],
)
def test_what_is_never_awaited_is_told(run_job: RunJob, mode: str, words: str) -> None:
    ended = run_job(2, "forgotten.py", mode)
    assert ended.returncode == 0, ended.stderr
    assert words in ended.stderr, ended.stderr


def test_nothing_is_told_of_calls_that_are_read(run_job: RunJob) -> None:
    ended = run_job(2, "forgotten.py", "nothing")
    assert (ended.returncode, ended.stderr) == (0, "")
