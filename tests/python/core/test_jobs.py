"""The Python front end on one PE and on several: each program checks itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize(
    "program",
    [
        "asyncio_edge.py",
        "channels.py",
        "chares.py",
        "device_channels.py",
        "payloads.py",
        "reductions.py",
        "refusals.py",
        "transports.py",
        "values.py",
    ],
)
def test_program(expect_success: Callable[..., str], program: str, num_pes: int) -> None:
    assert expect_success(num_pes, program) == "all checked\n"


def test_runs_after_each_other(expect_success: Callable[..., str]) -> None:
    assert expect_success(1, "twice.py") == "all checked\n"


@pytest.mark.parametrize("program", ["buffers.py", "device_arrays.py"])
def test_program_of_one_pe(expect_success: Callable[..., str], program: str) -> None:
    assert expect_success(1, program) == "all checked\n"


@pytest.mark.parametrize(
    ("program", "num_pes"),
    [("buffers.py", 1), ("device_channels.py", 2), ("payloads.py", 1), ("payloads.py", 2)],
)
def test_program_over_the_stand_in_cuda_driver(
    expect_success: Callable[..., str], stand_in_cuda: dict[str, str], program: str, num_pes: int
) -> None:
    assert expect_success(num_pes, program, "cuda", environment=stand_in_cuda) == "all checked\n"
