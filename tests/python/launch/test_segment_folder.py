"""The folder for shared-memory segments where it cannot be locked."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from weft.launch.leftovers import SegmentFolder


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
