"""Load balancing by device time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import RunJob

MISSING = 77
KINDS = ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)]


def run_checked(
    run_job: RunJob, num_pes: int, *arguments: str, environment: dict[str, str] | None = None
) -> str:
    """Returns what the job has written to stderr."""
    ended = run_job(num_pes, "device_work.py", *arguments, environment=environment)
    if ended.returncode == MISSING:
        pytest.skip(f"NOT TESTED: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith("all checked\n"), ended.stdout + ended.stderr
    return ended.stderr


# A GPU for each PE: where two share one, the times of each include waits for the other.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_step_by_device_time_moves_chares(
    run_job: RunJob, need_gpus: Callable[[int], None], num_pes: int, kind: str
) -> None:
    if kind == "cuda":
        need_gpus(num_pes)
    environment = {"WEFT_LB": "seen", "WEFT_LB_VERBOSE": "1"}
    text = run_checked(run_job, num_pes, "balance", kind, environment=environment)
    lines = [line for line in text.splitlines() if line.startswith("weft: load balancing of Field")]
    assert len(lines) == 2, text
    assert "step 2: seen by device time, imbalance" in lines[1]
    if num_pes == 2:
        assert " 0 moves" not in lines[1], lines[1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_span_counts(run_job: RunJob, need_gpus: Callable[[int], None], kind: str) -> None:
    if kind == "cuda":
        need_gpus(1)
    assert "could not be measured" not in run_checked(run_job, 1, "spans", kind)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_rounds_read_device_time(run_job: RunJob, num_pes: int) -> None:
    run_checked(run_job, num_pes, "periodic", environment={"WEFT_LB": "seen", "WEFT_LB_PERIOD": "0.005"})


def test_what_cannot_be_says_why(run_job: RunJob) -> None:
    assert run_checked(run_job, 1, "refused") == ""


@pytest.mark.parametrize("num_pes", [1, 2])
def test_without_a_stream(run_job: RunJob, stand_in_cuda: dict[str, str], num_pes: int) -> None:
    assert run_checked(run_job, num_pes, "default") == ""
    assert run_checked(run_job, num_pes, "default", environment=stand_in_cuda) == ""
