"""asyncio's functions in entry methods: the error says which function of Weft does the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

_FOLDER = str(Path(asyncio.__file__).parent)

#: By the function of asyncio, or its file.
_IN_PLACE = {
    "sleep": "await weft.sleep(seconds)",
    "wait_for": "async with weft.timeout(seconds)",
    "timeouts.py": "async with weft.timeout(seconds)",
    "gather": "await weft.gather(...)",
    "taskgroups.py": "await weft.gather(...)",
    "create_task": "await weft.gather(...)",
    "ensure_future": "await weft.gather(...)",
    "wait": "await weft.wait(...)",
    "as_completed": "weft.as_completed(...)",
    "to_thread": "await weft.asyncio_future(asyncio.to_thread(...))",
    "shield": "weft.timeout, which ends the wait alone",
}


def explain(error: BaseException) -> None:
    """Adds to an error that left a coroutine of Weft, if asyncio raised it because it found no event loop."""
    if asyncio._get_running_loop() is not None or len(error.args) != 1:
        return
    instead = _instead(error)
    if instead is None and error.args[0] == "no running event loop":
        instead = "await weft.asyncio_future(coroutine), which runs the coroutine in an event loop"
    if instead is not None:
        error.args = (
            f"{error.args[0]} (an entry method runs in Weft's scheduler, not in an event loop of asyncio: "
            f"use {instead})",
        )


def _instead(error: BaseException) -> str | None:
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if code.co_filename.startswith(_FOLDER):
            return _IN_PLACE.get(code.co_name) or _IN_PLACE.get(Path(code.co_filename).name)
        at = at.tb_next
    return None
