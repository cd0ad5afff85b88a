"""Messages between memories of every allocator. Every byte is compared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob

MISSING = 77


def paths(printed: str) -> set[str]:
    """The paths of device memory between PEs."""
    return {" ".join(line.split()[3:-2]) for line in printed.splitlines() if line.startswith("peer copy")}


def test_memory_that_cannot_be_mapped(expect_success: Callable[..., str]) -> None:
    printed = expect_success(2, "allocator_mix.py", "emulated", "160")
    assert {"peer-mapped", "bounced", "pulled"} <= paths(printed), printed


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_allocators_on_gpus(run_job: RunJob, need_gpus: Callable[[int], None], library: str) -> None:
    need_gpus(1)
    ended = run_job(2, "allocator_mix.py", library, "160")
    if ended.returncode == MISSING:
        pytest.skip(f"NOT TESTED: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "bounced" in paths(ended.stdout), ended.stdout
