"""weft.run: a job from its start to its end."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TextIO, TypeVar, overload

from weft import _core
from weft._await.async_generators import closed_when_left
from weft._job.signals import EndingSignals

_T = TypeVar("_T")


@overload
def run(main: Callable[[], Coroutine[Any, Any, _T]]) -> _T | None: ...
@overload
def run(main: Callable[[], _T]) -> _T | None: ...
def run(main: Callable[[], Any]) -> Any:
    """Runs a job: collective over its PEs, each of which calls it once with the same `main`.

    `main` runs on PE 0. If it is an ``async def``, the job ends when it returns. Calls that were not awaited
    may be dropped then: await them, or ``weft.quiescence()``. If it is an ordinary function, it starts the
    work, and the job goes on until the program calls ``weft.exit()``. If nothing can happen any more and
    ``weft.exit()`` was not called, the job ends with a message and exit code 1.

    Like each coroutine, an ``async def`` main runs in a copy of the caller's context (contextvars). An
    asynchronous generator that is left before its end runs its ``finally``; when main has returned, the job
    waits for those of PE 0.

    Blocks until the job has ended. A process that an entry method forks has no job: calls of weft raise
    weft.Error there, and the process ends with ``sys.exit()`` or ``os._exit()``.

    Args:
        main: a function without arguments.

    Returns:
        What main returned, on PE 0; None on the others.

    Raises:
        Exception: what main raised, on the PE of main, with its traceback. On the other PEs SystemExit(1).
        SystemExit: the job ended with a code other than 0, after weft.exit(code) or after an exception
            without an awaiting caller, which was printed on stderr; or SIGTERM has ended it (code 143).
        KeyboardInterrupt: Ctrl-C. Under a launcher every PE raises it, and the launcher prints one message
            for all of them: no traceback is printed.
        weft.Error: the job could not start.
    """
    if not callable(main):
        raise _core.Error(
            f"weft.run takes the function main, not a {type(main).__name__}; write weft.run(main)"
        )
    return run_with(_core._run, main)


# Runs a job with main. Returns its exit code, the signal that has ended it or 0, whether a launcher ends the
# processes, what main returned, and what it raised on this PE.
Start = Callable[[Callable[[], Any]], tuple[int, int, bool, Any, BaseException | None]]


def run_with(start: Start, main: Callable[[], Any]) -> Any:
    """What weft.run and weft.pgas.run have in common: `start` runs the job with `main`."""
    with EndingSignals() as signals:
        code, number, by_launcher, result, error = _start(start, main)
        if by_launcher:
            signals.ignore_termination()
        if number != 0 and error is None:
            raise signals.end_of_program(number, by_launcher)
    if error is not None:
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame
    if code != 0:
        raise SystemExit(code)
    return result


def _start(start: Start, main: Callable[[], Any]) -> tuple[int, int, bool, Any, BaseException | None]:
    # A PE that is ended from outside does not come to flush what it printed; and a line that is written
    # at once stays whole among those of other PEs: with PYTHONUNBUFFERED its end would be written on its own.
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.closed:
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    try:
        with closed_when_left():
            return start(main)
    finally:
        if "weft._pool.members" in sys.modules:
            sys.modules["weft._pool.members"].end_of_job()
        if "weft._job.devices" in sys.modules:
            sys.modules["weft._job.devices"].stop_watching()
        if "weft._await.asyncio_edge" in sys.modules:
            sys.modules["weft._await.asyncio_edge"].end_of_job()
        _flush(sys.stdout)
        _flush(sys.stderr)


def _flush(stream: TextIO | None) -> None:
    """A program may have closed its streams, or have been started without them."""
    if stream is None or stream.closed:
        return
    with contextlib.suppress(OSError):  # the interpreter reports it when it ends
        stream.flush()
