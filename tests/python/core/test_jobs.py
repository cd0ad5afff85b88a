"""The Python front end on one PE and on several: each program checks itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize(
    "program", ["chares.py", "values.py", "channels.py", "reductions.py", "refusals.py", "asyncio_edge.py"]
)
def test_program(expect_success: Callable[..., str], program: str, num_pes: int) -> None:
    assert expect_success(num_pes, program) == "all checked\n"


def test_runs_after_each_other(expect_success: Callable[..., str]) -> None:
    assert expect_success(1, "twice.py") == "all checked\n"
