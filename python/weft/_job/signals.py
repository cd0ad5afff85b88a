"""Signals that end a program while a job runs: SIGTERM ends it as Ctrl-C does, so that its cleanup runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType

from weft import _core

#: timeout(1) signals a process and then its process group: two signals within microseconds. A person who
#: wants to kill the process takes longer.
_REPEAT_S = 0.2

_terminated_at: float | None = None


def _terminate(number: int, frame: FrameType | None) -> None:
    """A second signal kills the process. Under a launcher the launcher does that, for all PEs."""
    global _terminated_at
    now = time.monotonic()
    if _terminated_at is None:
        _terminated_at = now
        raise _core._Terminated(128 + number)
    if now > _terminated_at + _REPEAT_S and "WEFT_LAUNCHER_PID" not in os.environ:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _is_ending_already(number: int, frame: FrameType | None) -> None:
    """The launcher ends a job with SIGTERM, and kills what is left of it later."""


#: The handlers of this module, which are none of the program's.
HANDLERS = (_terminate, _is_ending_already)


def ignore_termination() -> None:
    """The launcher ends the job and sends SIGTERM too, which must not cut off the program's cleanup."""
    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread and signal.getsignal(signal.SIGTERM) is _terminate:
        signal.signal(signal.SIGTERM, _is_ending_already)


def show_stacks_on_request(file: int) -> bool:
    """From now on SIGUSR1 writes the stacks of this process to `file`, and then calls Weft's own handler.

    `file` is a descriptor that stays open; -1 is stderr. faulthandler runs no Python for that, so the process
    may be anywhere. Returns whether it will: stderr may be no file.
    """
    import faulthandler

    try:
        out = sys.stderr if file < 0 else file
        faulthandler.register(signal.SIGUSR1, file=out, all_threads=True, chain=True)
    except (AttributeError, ValueError, OSError, RuntimeError):
        return False
    return True


def hide_stacks() -> None:
    """Undoes `show_stacks_on_request`."""
    import faulthandler

    faulthandler.unregister(signal.SIGUSR1)


class EndingSignals:
    """While it is entered, SIGTERM ends the job and makes weft.run raise SystemExit(143).

    A handler of the program stays. Other threads than the main one cannot set handlers; SIGTERM then kills
    the process at once, as without Weft. `can_drain`: in a job with `--drain-on SIGTERM` the signal is the
    job's (src/job/drain_signal.h).
    """

    def __init__(self, *, can_drain: bool) -> None:
        self._is_set = False
        self._drains = can_drain and os.environ.get("WEFT_DRAIN_ON") == "SIGTERM"

    def __enter__(self) -> EndingSignals:
        global _terminated_at
        _terminated_at = None
        is_main_thread = threading.current_thread() is threading.main_thread()
        if self._drains:
            return self
        if is_main_thread and signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _is_ending_already):
            signal.signal(signal.SIGTERM, _terminate)
            self._is_set = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_set and signal.getsignal(signal.SIGTERM) is _terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def end_of_program(self, number: int, by_launcher: bool) -> BaseException:
        """The exception that the program gets after a signal has ended the job."""
        if number == signal.SIGTERM:
            return SystemExit(128 + number)
        error = KeyboardInterrupt()
        if by_launcher:
            _leave_unprinted(error)
        return error


def _leave_unprinted(error: BaseException) -> None:
    """The launcher says once for all PEs what has happened: a traceback of each would add nothing."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        if value is not error:
            previous(kind, value, trace)

    sys.excepthook = hook
