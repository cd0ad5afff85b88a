"""Messages that streams of devices order, in loops and in graphs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

PROGRAM = "queued.py"
SIZES = ("3", "40000")  # one kernel a message, and a copy between two


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["loop", "graph", "exchange"])
def test_values_go_round(expect_success: Callable[..., str], num_pes: int, mode: str, size: str) -> None:
    assert "all checked" in expect_success(num_pes, PROGRAM, mode, size, "emulated")


@pytest.mark.gpu
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["loop", "graph"])
def test_values_go_round_on_gpus(
    expect_success: Callable[..., str], need_gpus: Callable[[int], None], mode: str, size: str
) -> None:
    need_gpus(1)
    pytest.importorskip("cupy")
    assert "all checked" in expect_success(2, PROGRAM, mode, size, "cuda")


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_connected_chare_stays_and_misuse_is_named(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert "all checked" in expect_success(num_pes, PROGRAM, "moves", "3", "emulated")


@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_peer_that_dies_while_a_stream_waits_ends_the_job(
    run_job: Callable[..., subprocess.CompletedProcess[str]], need_gpus: Callable[[int], None], kind: str
) -> None:
    if kind == "cuda":
        need_gpus(1)
    ended = run_job(2, PROGRAM, "die", "3", kind)
    assert ended.returncode != 0
    assert "was killed by signal 9 (SIGKILL)" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_job_that_ends_while_a_stream_waits_says_so(
    run_job: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    ended = run_job(2, PROGRAM, "wait", "3", "emulated")
    assert "all checked" in ended.stdout
    assert "waits for a signal that no PE sends" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2, 3])
def test_elements_of_a_collection_have_collectives_of_device_arrays(
    expect_success: Callable[..., str], num_pes: int
) -> None:
    assert "all checked" in expect_success(num_pes, "chare_group.py")
