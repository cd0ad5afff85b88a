"""Shared memory of PEs: how much UCX may use, what killed PEs leave behind, and folders of killed launchers.

UCX gives its segments no name while they are in use: it removes the name of a POSIX segment as soon as it has
made it. A PE that is killed before that leaves it. The name of a segment says nothing about its owner, so the
PEs of a job make theirs in a folder of the job (UCX_POSIX_DIR). PEs make no System V segments.

Threads: none. The launcher holds a lock on the folder as long as it lives, so that the folder of a launcher
that was killed can be recognised; the next `weft run` removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping

SHARED_MEMORY = "/dev/shm"
PREFIX = "weft-segments-"
_MOST_ATTEMPTS = 10

# UCX's queue of a PE and its buffers take 2.2 MiB, and as much again when many messages wait.
_ROOM_PER_PE = 8 << 20
_RESERVE = 64 << 20
# With these they take 0.6 MiB.
_SMALL_QUEUES = {"UCX_MM_FIFO_SIZE": "64", "UCX_MM_RX_BUFS_GROW": "72"}


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


def queue_settings(folder: str, num_pes: int, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Settings of UCX with which it uses less memory if this file system is small, as a container's is.

    All PEs need the same. A user who has set one of them decides about all.
    """
    try:
        state = os.statvfs(folder)
    except OSError:
        return {}  # the PEs say what is wrong
    is_small = state.f_bavail * state.f_frsize < _RESERVE + _ROOM_PER_PE * num_pes
    return _SMALL_QUEUES if is_small and not _SMALL_QUEUES.keys() & environment.keys() else {}


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
