"""Where a suspended coroutine stands, and what it awaits there, for reports about programs that hang."""

from __future__ import annotations

import os
from types import FrameType
from typing import Any

from weft._job.modules import loaded

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Of a wait for several things.
_MOST_THINGS = 8


def stand_of(coroutine: Any, awaited: Any) -> tuple[str, tuple[Any, ...]]:
    """The line of the program in which `coroutine` waits, and the futures and operations that it waits for.

    The line is that of the innermost frame which is not of Weft, as "app.py:17"; empty if there is none.
    `awaited` is what the coroutine has yielded to the scheduler. A wait for several things, such as
    weft.gather, yields a future of its own: then the things that are pending are returned.
    """
    place = ""
    things: tuple[Any, ...] = (awaited,)
    part = coroutine
    while part is not None:
        frame, part = _frame_and_inner(part)
        if frame is None:
            continue
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            place = f"{_short(file)}:{frame.f_lineno}"
        else:
            things = _things_of_wait(frame) or things
    return place, things


def _frame_and_inner(part: Any) -> tuple[FrameType | None, Any]:
    """The frame of a coroutine or generator, and what it awaits; None for other objects."""
    for frame, inner in (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await")):
        if hasattr(part, inner):
            return getattr(part, frame), getattr(part, inner)
    return None, None


def _things_of_wait(frame: FrameType) -> tuple[Any, ...]:
    waiting = loaded("weft._await.waiting")
    if waiting is None or frame.f_code is not waiting._Wait.change.__code__:
        return ()
    pending = [thing for thing in frame.f_locals["self"].things if id(thing) in waiting._Watch.known]
    return tuple(pending[:_MOST_THINGS])


def _short(file: str) -> str:
    """The path from the current folder, if the file is in it."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):  # the current folder is gone
        return file
    return file if relative.startswith(os.pardir) else relative
