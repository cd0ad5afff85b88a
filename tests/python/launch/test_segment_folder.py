"""The folder for shared-memory segments where it cannot be locked."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from weft.launch.leftovers import SegmentFolder, queue_settings


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EMFILE])
def test_a_folder_that_cannot_be_locked_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    attempts = 0

    def fail(*arguments: object, **options: object) -> int:
        nonlocal attempts
        attempts += 1
        assert attempts <= 100, "the launcher tries without end"
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        if number == errno.ENOLCK:
            patch.setattr(fcntl, "flock", fail)
        else:
            patch.setattr(os, "open", fail)
        folder = SegmentFolder(str(tmp_path))
    assert attempts > 0
    assert folder.path is None
    assert list(tmp_path.iterdir()) == []
    folder.close()


def test_a_folder_is_locked_and_removed_at_the_end(tmp_path: Path) -> None:
    folder = SegmentFolder(str(tmp_path))
    assert folder.path is not None
    other = SegmentFolder(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2, "the folder of a launcher that runs was removed"
    folder.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free_mib", "num_pes", "environment", "expected"),
    [
        (64, 1, {}, "64"),  # a container's default
        (64, 32, {}, "64"),
        (20, 4, {}, "64"),
        (1024, 64, {}, None),
        (64, 32, {"UCX_MM_FIFO_SIZE": "128"}, None),  # the user decides
        (64, 32, {"UCX_MM_RX_BUFS_GROW": "1000"}, None),
    ],
)
def test_a_small_file_system_makes_small_queues(
    monkeypatch: pytest.MonkeyPatch,
    free_mib: int,
    num_pes: int,
    environment: dict[str, str],
    expected: str | None,
) -> None:
    own = os.statvfs("/")
    small = os.statvfs_result((own.f_bsize, 4096, free_mib << 8, free_mib << 8, free_mib << 8, *own[5:]))
    monkeypatch.setattr(os, "statvfs", lambda folder: small)
    assert queue_settings("/dev/shm", num_pes, environment).get("UCX_MM_FIFO_SIZE") == expected


def test_the_pes_say_that_there_is_no_file_system(tmp_path: Path) -> None:
    assert queue_settings(str(tmp_path / "missing"), 4, {}) == {}
