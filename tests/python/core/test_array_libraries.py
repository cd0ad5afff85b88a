"""Arrays of the libraries that people use on GPUs, each where it is installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob

MISSING = 77


def test_stand_in(expect_success: Callable[..., str], stand_in_cuda: dict[str, str]) -> None:
    """The program itself, with CUDA that is none."""
    for num_pes in (1, 2):
        printed = expect_success(num_pes, "array_libraries.py", "standin", environment=stand_in_cuda)
        assert printed == "all checked\n"


@pytest.mark.gpu
@pytest.mark.parametrize("num_pes", [1, 2])
@pytest.mark.parametrize("library", ["cupy", "torch", "numba", "jax", "standin"])
def test_library(run_job: RunJob, need_gpus: Callable[[int], None], library: str, num_pes: int) -> None:
    need_gpus(1)
    # Two processes share a GPU here, and JAX would take three quarters of its memory in each.
    ended = run_job(
        num_pes, "array_libraries.py", library, environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    )
    if ended.returncode == MISSING:
        pytest.skip(f"NOT TESTED: {ended.stderr.strip()}")
    assert (ended.returncode, ended.stdout) == (0, "all checked\n"), ended.stdout + ended.stderr
