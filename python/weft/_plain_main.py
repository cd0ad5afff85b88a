"""After a main that is an ordinary function: the end of a job in which nothing can happen any more."""

from __future__ import annotations

import inspect
import signal
import sys
import threading
from typing import Any, NoReturn

from weft import _core

# Between two looks at PEs that still wait for something: a sleep, a copy, another thread.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0

_NOTHING_LEFT = (
    "main is an ordinary function and has returned, weft.exit() was not called, and nothing can happen any "
    "more: no message is under way, and no PE waits for a sleep, a copy or another thread. Call weft.exit() "
    "when the work is done, or write `async def main()`: the job then ends when main returns"
)


class _Watch(_core.Chare):
    """One per PE: says whether anything but a message can wake it."""

    def state(self) -> tuple[bool, int]:
        """Whether something is pending that no message brings, and how many sleeps were started so far."""
        pending, num_sleeps = _core._pending()
        return pending or _threads_may_post() or _signals_may_act(), num_sleeps


def after(returned: object) -> Any:
    """Called when main has returned `returned` and the job goes on: a coroutine that watches it.

    Raises:
        weft.Error: main is a generator function, which has not run.
    """
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        _refuse_generator(returned)
    return _watch()


def _refuse_generator(returned: Any) -> NoReturn:
    raise _core.Error(
        f"main, {returned.__qualname__}, is a generator function and has not run; write `async def main()` "
        "without yield, and `await` what it waits for"
    )


async def _watch() -> None:
    """Ends the job when nothing can happen any more.

    That holds if all PEs were quiescent, then none had anything pending, then all were quiescent again, and
    then none had anything pending or had started a sleep meanwhile.
    """
    pes = _core.Group(_Watch)
    pause_s = _FIRST_PAUSE_S
    before: int | None = None
    while True:
        await _core.quiescence()
        states = await pes.state.call()
        if any(pending for pending, _ in states):
            before = None
            await _core.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            continue
        num_sleeps = sum(number for _, number in states)
        if num_sleeps == before:
            _core._fail(_NOTHING_LEFT)
            return
        before = num_sleeps


def _threads_may_post() -> bool:
    """Whether a thread of the program, or a coroutine in asyncio's loop, may still call Weft."""
    asyncio_edge = sys.modules.get("weft._asyncio")
    if asyncio_edge is not None and asyncio_edge.num_running() > 0:
        return True
    own = {threading.main_thread(), threading.current_thread()}
    if asyncio_edge is not None:
        own.add(asyncio_edge.loop_thread())
    return any(thread not in own for thread in threading.enumerate())


def _signals_may_act() -> bool:
    """Whether the program has a signal handler of its own, which may call weft.exit()."""
    return any(
        callable(handler) and handler is not signal.default_int_handler
        for handler in map(signal.getsignal, signal.valid_signals())
    )
