"""Collections that are destroyed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize(
    "mode", ["proxies", "waiting", "kept", "survivors", "finalizers", "methods", "refused"]
)
def test_destroying(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "destroying.py", mode)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_generations_need_no_more_memory(expect_success: Callable[..., str], num_pes: int) -> None:
    expect_success(num_pes, "destroying.py", "generations")


@pytest.mark.parametrize("mode", ["survivors", "methods"])
def test_check_mode(expect_success: Callable[..., str], mode: str) -> None:
    expect_success(2, "destroying.py", mode, environment={"WEFT_CHECK": "1"})


def test_a_late_call_that_nothing_awaits_ends_the_job(run_job: RunJob) -> None:
    ended = run_job(1, "destroying.py", "late")
    assert ended.returncode == 1
    for word in ("a call of Counter[0].add", "comes too late", "has been destroyed", "Await all calls"):
        assert word in ended.stderr


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("other_exception", ("Party[0].fail", "ValueError", "a mistake")),
        (
            "survivor_in_a_loop",
            ("Party[0].receive", "the collection Party at the other end has been destroyed", "destroying.py"),
        ),
    ],
)
@pytest.mark.parametrize("num_pes", [1, 2])
def test_exceptions_that_end_the_job(
    run_job: RunJob, mode: str, words: tuple[str, ...], num_pes: int
) -> None:
    ended = run_job(num_pes, "destroying.py", mode)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr, ended.stderr
