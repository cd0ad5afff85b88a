"""The PEs beside this process, for one job: their launcher, and what it has to say."""

from __future__ import annotations

import json
import marshal
import os
import socket
import subprocess
import sys
import tempfile

from weft import _core
from weft.launch.environment import SESSION_FOLDER, start_command

#: PEs of one host, as in weft.launch.command.
MAX_PES = 4096


class OtherPes:
    """PEs 1 to `pes` - 1, which a launcher starts as fresh processes. Any thread may make it.

    Raises:
        weft.Error: they could not be started.
    """

    def __init__(self, pes: int) -> None:
        self._received = b""
        self._before: dict[str, str | None] = {}
        self._launcher: subprocess.Popen[bytes] | None = None
        try:
            self._control, theirs = socket.socketpair()
            try:
                with theirs:
                    self._launcher = _start_launcher(pes, theirs.fileno())
                self._environment = self._first_line()
            except BaseException:  # Ctrl-C too
                self._control.close()
                if self._launcher is not None:
                    self._launcher.wait()
                raise
        except OSError as error:
            raise _core.Error(f"the other PEs could not be started: {error}") from error
        self.folder = self._environment.pop(SESSION_FOLDER)

    def _first_line(self) -> dict[str, str]:
        while b"\n" not in self._received:
            data = self._control.recv(1 << 16)
            if not data:
                break
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        try:
            return dict(json.loads(line))
        except ValueError:
            words = line.decode(errors="replace") + "\n" + self.close()
            raise _core.Error(f"the other PEs could not be started: {words.strip()}") from None

    def enter_environment(self) -> None:
        """Gives this process the environment of PE 0, for the start of the job."""
        # A connection of the launcher around this job is not the job's.
        self._before = {name: os.environ.get(name) for name in (*self._environment, "PMI_FD")}
        os.environ.update(self._environment)
        os.environ.pop("PMI_FD", None)

    def leave_environment(self) -> None:
        """Takes it back: programs that this process starts are not in the job. May be called twice."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}

    def close(self) -> str:
        """Waits until the other PEs and the launcher have ended. Returns what they had to say.

        The launcher kills the PEs that have not ended by themselves seconds after the job, and names them.
        """
        assert self._launcher is not None
        self._control.shutdown(socket.SHUT_WR)
        while data := self._control.recv(1 << 16):
            self._received += data
        self._control.close()
        words = self._received.decode(errors="replace")
        code = self._launcher.wait()
        if code < 0:
            pid = self._launcher.pid
            words += f"the launcher of the other PEs (pid {pid}) was killed by signal {-code}\n"
        return words


def _start_launcher(pes: int, descriptor: int) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() as start:
        path = [entry for entry in sys.path if isinstance(entry, str)]
        marshal.dump((path, [str(argument) for argument in sys.argv]), start)
        start.seek(0)
        launcher = start_command(start.fileno(), "weft.launch.attached", pes, descriptor)
        return subprocess.Popen(
            launcher,
            pass_fds=[descriptor, start.fileno()],
            stdin=subprocess.DEVNULL,
            # Ctrl-C of a terminal is for this process alone, which ends the job.
            start_new_session=True,
        )
