"""weft.run: a job from its start to its end."""

from __future__ import annotations

import contextlib
import gc
import io
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TextIO, TypeVar, overload

from weft import _core
from weft._await.async_generators import closed_when_left
from weft._job.modules import loaded
from weft._job.signals import EndingSignals, ignore_termination

_T = TypeVar("_T")


@overload
def run(main: Callable[[], Coroutine[Any, Any, _T]], *, pes: int) -> _T: ...
@overload
def run(main: Callable[[], _T], *, pes: int) -> _T: ...
@overload
def run(main: Callable[[], Coroutine[Any, Any, _T]], *, pes: None = None) -> _T | None: ...
@overload
def run(main: Callable[[], _T], *, pes: None = None) -> _T | None: ...
def run(main: Callable[[], Any], *, pes: int | None = None) -> Any:
    """Runs a job. In a launch of several PEs it is collective: each PE calls it with the same `main`.

    With `pes`, and without a launcher, this process is PE 0 and starts the other PEs: fresh processes, which
    end with the job, or with this process. They import modules by name; classes and functions of
    ``__main__``, of a notebook or of a test module travel to them by value.

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
        pes: how many PEs the job has. None for those of the launch, or one without a launcher. Under a
            launcher it must be the number of PEs of the launch.

    Returns:
        What main returned, on PE 0; None on the others. None too, without a job, in a child of
        multiprocessing that imports the program (``spawn``, ``forkserver``).

    Raises:
        Exception: what main raised, on the PE of main, with its traceback. On the other PEs SystemExit(1).
        SystemExit: the job ended with a code other than 0, after weft.exit(code) or after an exception
            without an awaiting caller, which was printed on stderr; or SIGTERM has ended it (code 143).
        KeyboardInterrupt: Ctrl-C. Under a launcher every PE raises it, and the launcher prints one message
            for all of them: no traceback is printed.
        weft.Error: the job could not start; or it ended because of an error, and this process has started the
            other PEs.
    """
    if not callable(main):
        raise _core.Error(
            f"weft.run takes the function main, not a {type(main).__name__}; write weft.run(main)"
        )
    if is_import_of_multiprocessing():
        return None
    if "weft._session.session" in sys.modules:
        session = sys.modules["weft._session.session"].open_session()
        if session is not None:
            return session.run(main, pes=pes)
    if pes is not None:
        from weft._session import run_on

        pes = run_on.check_pes(pes)
        launched = run_on.launched_pes()
        if launched is None and pes > 1:
            return run_on.run_on(pes, main)
        run_on.check_launch(pes, 1 if launched is None else launched)
        main = run_on.run_in_launch(pes, main)
    return run_with(_core._run, main)


def is_import_of_multiprocessing() -> bool:
    """Whether this is a child of multiprocessing that imports the main program for what it defines."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and getattr(process.current_process(), "_inheriting", False)


# How a job has ended: its exit code, None if it begins again because PEs were lost or their number changes,
# or False if it goes on without this PE; the signal that has
# ended it or 0; whether a launcher ends the processes; what main returned; and what it raised on this PE.
_End = tuple[int | None, int, bool, Any, BaseException | None]
Start = Callable[[Callable[[], Any]], _End]


def run_with(start: Start, main: Callable[[], Any]) -> Any:
    """What weft.run and weft.pgas.run have in common: `start` runs the job with `main`."""
    with EndingSignals(can_drain=start is _core._run) as signals:
        code, number, by_launcher, result, error = _start(start, main)
        while code is None:
            gc.collect()  # what the lost incarnation has left in cycles, its connections among it
            code, number, by_launcher, result, error = _start(start, main)
        if code is False:
            # What the program does after the job is for the PEs that are in it then.
            raise SystemExit(0)
        if by_launcher:
            ignore_termination()
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


def _start(start: Start, main: Callable[[], Any]) -> _End:
    # A PE that is ended from outside does not come to flush what it printed; and a line that is written
    # at once stays whole among those of other PEs: with PYTHONUNBUFFERED its end would be written on its own.
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.closed:
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    try:
        with closed_when_left():
            return start(main)
    finally:
        for name in ("weft._pool.members", "weft._await.waiting"):
            if module := loaded(name):
                module.end_of_job()
        if devices := loaded("weft._job.devices"):
            devices.stop_watching()
        if asyncio_edge := loaded("weft._await.asyncio_edge"):
            asyncio_edge.end_of_job()
        _flush(sys.stdout)
        _flush(sys.stderr)


def _flush(stream: TextIO | None) -> None:
    """A program may have closed its streams, or have been started without them."""
    if stream is None or stream.closed:
        return
    with contextlib.suppress(OSError):  # the interpreter reports it when it ends
        stream.flush()
