"""Checkpoints of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import RunJob


@pytest.mark.parametrize(("saved_on", "restored_on"), [(1, 2), (2, 1), (2, 3), (3, 2), (2, 2)])
def test_restored_on_any_number_of_pes(
    expect_success: Callable[..., str], tmp_path: Path, saved_on: int, restored_on: int
) -> None:
    folder = str(tmp_path / "made" / "here")
    assert "all checked" in expect_success(saved_on, "checkpointing.py", "save", folder)
    assert "all checked" in expect_success(restored_on, "checkpointing.py", "restore", folder)
    names = sorted(path.name for path in (tmp_path / "made" / "here").iterdir())
    assert names == ["checkpoint-3", "checkpoint-4", "lock"]


@pytest.mark.parametrize("program", ["checkpointing_sparse.py", "checkpointing_channels.py"])
def test_saved_and_restored_again_and_again(
    expect_success: Callable[..., str], tmp_path: Path, program: str
) -> None:
    for num_pes in (2, 3, 1, 2):
        assert "all checked" in expect_success(num_pes, program, str(tmp_path))


@pytest.mark.parametrize("num_pes", [1, 2])
def test_what_cannot_be_saved_says_why(
    expect_success: Callable[..., str], tmp_path: Path, num_pes: int
) -> None:
    assert "all checked" in expect_success(num_pes, "checkpointing.py", "refused", str(tmp_path))


@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_device_memory_is_saved(
    expect_success: Callable[..., str], need_gpus: Callable[[int], None], tmp_path: Path, kind: str
) -> None:
    if kind == "cuda":
        need_gpus(1)
    assert "all checked" in expect_success(2, "checkpointing.py", "save_device", str(tmp_path), kind)
    assert "all checked" in expect_success(3, "checkpointing.py", "restore_device", str(tmp_path), kind)


def test_a_damaged_checkpoint_is_named_and_the_one_before_restored(run_job: RunJob, tmp_path: Path) -> None:
    assert run_job(2, "checkpointing.py", "save", str(tmp_path)).returncode == 0
    file = tmp_path / "checkpoint-3" / "elements-1"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    ended = run_job(2, "checkpointing.py", "restore", str(tmp_path))
    assert ended.returncode == 1 and "step" in ended.stderr  # 8, where the program expects 9
    assert f"the checkpoint file {file} is damaged" in ended.stderr
    assert f"restoring {tmp_path / 'checkpoint-2'}" in ended.stderr


def test_a_restored_collection_is_balanced(expect_success: Callable[..., str], tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/not-utf-8-\xff")
    for num_pes in (2, 3):
        assert "all checked" in expect_success(num_pes, "checkpointing.py", "balanced", folder)
    assert (Path(folder) / "checkpoint-1").is_dir()


def test_a_checkpoint_that_fails_and_is_not_awaited_ends_the_job(run_job: RunJob, tmp_path: Path) -> None:
    ended = run_job(2, "checkpointing.py", "unawaited", str(tmp_path))
    assert ended.returncode == 1
    assert "a checkpoint that was not awaited" in ended.stderr and "coroutine that waits" in ended.stderr
