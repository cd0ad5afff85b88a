"""The Unix socket at which PEs find the launcher, in a directory that only this user may enter."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile

from weft.launch.command import UsageError
from weft.launch.leftovers import make_locked_folder

_MAX_PATH_BYTES = 107
_NAME = "launcher"
PREFIX = "weft-run-"


class Listener:
    """Made in a private directory (mode 0700) which `close` removes.

    If this process is killed before, the next `weft run` of the user removes it.
    """

    def __init__(self, backlog: int) -> None:
        self._directory, self._lock = _private_directory()
        self.path = os.path.join(self._directory, _NAME)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.bind(self.path)
            self.socket.listen(backlog)
            self.socket.setblocking(False)
        except OSError:
            self.close()
            raise

    def accept(self) -> socket.socket | None:
        """The next connection, or None when there is none waiting or the listener is closed.

        A selector's answer from before `close` may still name it.
        """
        if self.socket.fileno() < 0:
            return None
        try:
            return self.socket.accept()[0]
        except (BlockingIOError, ConnectionError):
            return None

    def close(self) -> None:
        """Closes the socket and removes its directory. May be called twice."""
        self.socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _private_directory() -> tuple[str, int | None]:
    """The directory, and its lock if it has one: a later launcher removes it if this one is killed."""
    problems = []
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp")):
        if len(os.fsencode(os.path.join(parent, f"{PREFIX}12345678", _NAME))) > _MAX_PATH_BYTES:
            problems.append(f"{parent}: too long for a socket's path")
            continue
        if (made := make_locked_folder(parent, PREFIX)) is not None:
            return made
        try:
            return tempfile.mkdtemp(prefix="weft-", dir=parent), None
        except OSError as error:
            problems.append(f"{parent}: {error.strerror}")
    raise UsageError(
        f"no directory for the launcher's socket ({'; '.join(problems)}): set TMPDIR to a short, writable one"
    )
