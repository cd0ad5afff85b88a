"""The PEs beside this process, for one job: their launcher, and what it has to say."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from weft import _core
from weft.launch.environment import SESSION_FOLDER

#: PEs of one host, as in weft.launch.command.
MAX_PES = 4096

# A process gets this one's sys.path: a notebook or a test run may have changed it.
_START = "import sys; sys.path[:] = {path!r}; sys.argv[:] = {argv!r}; from {module} import main; main()"


class OtherPes:
    """PEs 1 to `pes` - 1, which a launcher starts as fresh processes. Any thread may make it.

    Raises:
        weft.Error: they could not be started.
    """

    def __init__(self, pes: int) -> None:
        self._control, theirs = socket.socketpair()
        worker = _command("weft._session.worker", sys.argv)
        with theirs:
            descriptor = theirs.fileno()
            launcher = _command("weft.launch.attached", ["weft", str(pes), str(descriptor), *worker])
            self._launcher = subprocess.Popen(
                launcher,
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                # Ctrl-C of a terminal is for this process alone, which ends the job.
                start_new_session=True,
            )
        self._received = b""
        self._environment = self._first_line()
        self.folder = self._environment.pop(SESSION_FOLDER)
        self._before: dict[str, str | None] = {}

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

        The launcher kills the PEs that have not ended by themselves a second after the job.
        """
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


def _command(module: str, argv: list[str]) -> list[str]:
    start = _START.format(path=sys.path, argv=argv, module=module)
    return [sys.executable, *_interpreter_options(), "-c", start]


def _interpreter_options() -> list[str]:
    """The options that this interpreter was started with, as multiprocessing passes them on."""
    options: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return options
