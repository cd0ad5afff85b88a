"""Shared memory that PEs leave behind when they are killed, folders of killed launchers, and their removal.

UCX gives its segments no name while they are in use: it removes the name of a POSIX segment, and marks a
System V segment for removal, as soon as it has made them. A PE that is killed before that leaves them. The
name of a POSIX segment says nothing about its owner, so the PEs of a job make theirs in a folder of the job
(UCX_POSIX_DIR). A System V segment names the process that made it.

Threads: none. The launcher holds a lock on the folder as long as it lives, so that the folder of a launcher
that was killed can be recognised; the next `weft run` removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

SHARED_MEMORY = "/dev/shm"
PREFIX = "weft-segments-"
_SEGMENTS = Path("/proc/sysvipc/shm")
_MOST_ATTEMPTS = 10
_IPC_PRIVATE = 0
_IPC_RMID = 0


def make_locked_folder(parent: str, prefix: str) -> tuple[str, int] | None:
    """A private folder in `parent`, and the descriptor that holds its lock; None if there is no such folder.

    Removes the folders of this user with the same prefix whose launchers are gone.
    """
    _remove_folders_of_dead_launchers(parent, prefix)
    for _ in range(_MOST_ATTEMPTS):
        try:
            path = tempfile.mkdtemp(prefix=prefix, dir=parent)
        except OSError:
            return None
        if (fd := _lock(path)) is not None:
            return path, fd
        # Another launcher was faster and removes it, or there are no descriptors or locks left.
        with contextlib.suppress(OSError):
            os.rmdir(path)
    return None


def is_segment_folder(path: str | None) -> bool:
    """Whether this value of UCX_POSIX_DIR is the folder of a `weft run`, which may have ended."""
    return path is not None and path.startswith(os.path.join(SHARED_MEMORY, PREFIX))


class SegmentFolder:
    """Where the PEs of one job make their POSIX segments.

    `path` is None where there is no room for the folder, or where it cannot be locked.
    """

    def __init__(self, parent: str = SHARED_MEMORY) -> None:
        self.path: str | None = None
        if (made := make_locked_folder(parent, PREFIX)) is not None:
            self.path, self._fd = made

    def close(self) -> None:
        """Removes the folder and what is in it. The PEs have ended. May be called twice."""
        if self.path is None:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._fd)
        self.path = None


def remove_system_v_segments(pids: Collection[int]) -> None:
    """Removes the unused System V segments that these processes made. The processes have ended."""
    for identifier in list(_abandoned_segments(pids)):
        ctypes.CDLL(None).shmctl(identifier, _IPC_RMID, None)


def _abandoned_segments(pids: Collection[int]) -> Iterator[int]:
    try:
        head, *lines = _SEGMENTS.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return  # a system without them
    names = head.split()
    for line in lines:
        segment = dict(zip(names, map(int, line.split()), strict=False))
        is_ours = segment["cpid"] in pids and segment["cuid"] == os.geteuid()
        if is_ours and segment["key"] == _IPC_PRIVATE and segment["nattch"] == 0:
            yield segment["shmid"]


def _remove_folders_of_dead_launchers(parent: str, prefix: str) -> None:
    try:
        entries = list(os.scandir(parent))
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(prefix) or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
        except OSError:
            continue
        if (fd := _lock(entry.path)) is not None:
            shutil.rmtree(entry.path, ignore_errors=True)
            os.close(fd)


def _lock(path: str) -> int | None:
    """A descriptor that holds the lock of this folder; None if another process holds it, or it has gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_ino == os.stat(path).st_ino:
            return fd
    except OSError:
        pass
    os.close(fd)
    return None
