"""Collections that are destroyed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["proxies", "waiting", "kept", "survivors", "finalizers"])
def test_destroying(expect_success: Callable[..., str], mode: str, num_pes: int) -> None:
    assert "all checked" in expect_success(num_pes, "destroying.py", mode)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_generations_need_no_more_memory(expect_success: Callable[..., str], num_pes: int) -> None:
    expect_success(num_pes, "destroying.py", "generations")


def test_check_mode(expect_success: Callable[..., str]) -> None:
    expect_success(2, "destroying.py", "survivors", environment={"WEFT_CHECK": "1"})


def test_a_late_call_that_nothing_awaits_ends_the_job(run_job: RunJob) -> None:
    ended = run_job(1, "destroying.py", "late")
    assert ended.returncode == 1
    for word in ("Counter", "comes too late", "has been destroyed", "Await all calls"):
        assert word in ended.stderr
