"""weft.run: a job from its start to its end."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

from weft import _core

_T = TypeVar("_T")


@overload
def run(main: Callable[[], Coroutine[Any, Any, _T]]) -> _T | None: ...
@overload
def run(main: Callable[[], _T]) -> _T | None: ...
def run(main: Callable[[], Any]) -> Any:
    """Runs a job: collective over its PEs, each of which calls it once with the same `main`.

    `main` runs on PE 0. When it is an ``async def`` the job ends when it returns, and calls that nobody has
    awaited may be dropped: await them, or ``weft.quiescence()``. A plain function starts things, and the job
    goes on until somebody calls weft.exit(), as somebody must.

    Args:
        main: a function without arguments.

    Returns:
        What main returned, on PE 0; None on the others.

    Raises:
        SystemExit: the job ended with another code than 0: weft.exit(code), or an exception that nobody
            awaited, which has been described on stderr; and, with code 130, Ctrl-C under a launcher, which
            says so for all PEs.
        KeyboardInterrupt: Ctrl-C in a program that runs without a launcher.
        weft.Error: the job could not start.
    """
    if not callable(main):
        raise _core.Error(
            f"weft.run takes the function main, not a {type(main).__name__}; write weft.run(main)"
        )
    # A PE that is ended from outside does not come to flush what it printed; and a line that is written
    # at once stays whole among those of other PEs: with PYTHONUNBUFFERED its end would be written on its own.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    try:
        code, interrupted, result = _core._run(main)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    if interrupted:
        raise KeyboardInterrupt
    if code != 0:
        raise SystemExit(code)
    return result
