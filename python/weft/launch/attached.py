"""The launcher of weft.run(main, pes=N) and weft.session: PE 0 is the process that has started it.

It is `weft run` but for these differences:

- It starts PEs 1 to N - 1 alone. PE 0 joins like they do. It is neither signalled nor reaped.
- It ends with PE 0's end of a socket pair, which closes when PE 0 is done with the job or ends in any way. It
  ends with PE 0's process too, because children of PE 0 may hold the socket.
- What it has to say goes to PE 0 over that socket, because PE 0 raises it: first a line of JSON with the
  variables of PE 0's environment, then sentences.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import selectors
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping

from weft.launch.command import UsageError
from weft.launch.environment import SESSION_FOLDER, pe_environment, start_command
from weft.launch.job import CLEANUP_S, Job
from weft.launch.leftovers import make_locked_folder
from weft.launch.processes import Pe, Starter

_FOLDER_PREFIX = "weft-session-"
# Characters. They fit into the buffer of a socket.
_MOST_WORDS = 1 << 14
# What PE 0 needs to join, of what all PEs get.
_OF_PE_0 = ("WEFT_BOOTSTRAP", "WEFT_NUM_PES", "WEFT_LAUNCHER_PID", "WEFT_OUTER_PMIX", SESSION_FOLDER)


class AttachedJob(Job):
    """A job with `num_pes` PEs. This process starts all but the first, with the command line `worker`."""

    def __init__(
        self, num_pes: int, worker: list[str], control: socket.socket, environment: Mapping[str, str]
    ) -> None:
        super().__init__([worker] * num_pes, environment)
        self._control = control
        self._words_left = _MOST_WORDS
        self._pid_of_pe_0 = os.getppid()
        self._selector.register(control, selectors.EVENT_READ, self._pe_0_has_left)
        # Where the kernel is too old for it, the socket must do.
        with contextlib.suppress(OSError):
            self._process_of_pe_0 = os.pidfd_open(self._pid_of_pe_0)
            self._selector.register(self._process_of_pe_0, selectors.EVENT_READ, self._pe_0_has_left)

    def _start_pes(self) -> None:
        super()._start_pes()
        own = {name: value for name, value in self._environment.items() if self._is_for_pe_0(name)}
        self._send(json.dumps({**own, "WEFT_PE": "0", "WEFT_ATTACHED": "1"}) + "\n")

    def _is_for_pe_0(self, name: str) -> bool:
        return name in _OF_PE_0 or (
            name.startswith("UCX_") and self._environment[name] != os.environ.get(name)
        )

    def _start_pe(self, starter: Starter, number: int) -> Pe:
        return Pe(0, self._pid_of_pe_0, is_child=False) if number == 0 else starter.start(number)

    def _pe_0_has_left(self) -> None:
        pe = self._pes[0]
        if not pe.running:
            return
        pe.exit_status = 0
        self._selector.unregister(self._control)
        if pe.finished_code is None and not self._ending:
            self._kill_all()
        elif self._kill_at is None:
            self._kill_at = time.monotonic() + CLEANUP_S

    def _handle_deadlines(self, now: float) -> None:
        # The job has ended in order, and its PEs run their exit functions.
        if not self._ending and self._kill_at is not None and now >= self._kill_at:
            for pe in self._pes:
                if pe.running:
                    self._say(f"{pe.name} was killed: it had not ended {CLEANUP_S:g} s after the job")
        super()._handle_deadlines(now)

    def _abort(self, pe: Pe, exit_code: int, message: str) -> None:
        # An interrupted PE 0 raises KeyboardInterrupt or SystemExit, which say it all.
        if pe.number == 0 and message.startswith("weft: PE 0: interrupted by signal "):
            self._words_left = 0
        super()._abort(pe, exit_code, message)

    def _say(self, sentence: str) -> None:
        self._write(f"{sentence}\n")

    def _write(self, text: str) -> None:
        # The launcher must not wait for PE 0, which may be busy.
        self._send(text[: self._words_left])
        self._words_left = max(0, self._words_left - len(text))

    def _send(self, text: str) -> None:
        with contextlib.suppress(OSError):  # PE 0 has gone
            self._control.sendall(text.encode())


def main(num_pes: int, descriptor: int) -> None:
    """Serves one job of the process that has the other end of the control socket `descriptor`."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    made = make_locked_folder(tempfile.gettempdir(), _FOLDER_PREFIX)
    try:
        if made is None:
            raise UsageError(
                f"no private folder can be made in {tempfile.gettempdir()}: set TMPDIR to a writable one"
            )
        start = os.path.join(made[0], "start")
        with open(start, "xb") as file:
            marshal.dump((sys.path, sys.argv), file)  # PE 0's, see start_command
        worker = start_command(start, "weft._session.worker")
        environment = {**pe_environment(os.environ), SESSION_FOLDER: made[0]}
        sys.exit(AttachedJob(num_pes, worker, control, environment).run())
    except UsageError as error:
        with contextlib.suppress(OSError):  # PE 0 has gone
            control.sendall(f"{error}\n".encode())
        sys.exit(2)
    finally:
        if made is not None:
            shutil.rmtree(made[0], ignore_errors=True)
