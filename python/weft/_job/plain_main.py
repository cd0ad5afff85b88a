"""After a main that is an ordinary function: the end of a job in which nothing can happen any more."""

from __future__ import annotations

import signal
import threading
import types
from typing import Any, NoReturn

from weft import _core
from weft._job.modules import loaded
from weft._job.signals import HANDLERS

_NOTHING_LEFT = (
    "main is an ordinary function and has returned, weft.exit() was not called, and nothing can happen any "
    "more: no message is under way, and no PE waits for a sleep, a copy or another thread. Call weft.exit() "
    "when the work is done, or write `async def main()`: the job then ends when main returns"
)


def after(returned: object) -> Any:
    """Called when main has returned `returned` and the job goes on: a coroutine that watches it, on PE 0.

    Raises:
        weft.Error: main is a generator function, which has not run.
    """
    if isinstance(returned, types.GeneratorType | types.AsyncGeneratorType):
        _refuse_generator(returned)
    return _watch() if _core.my_pe() == 0 else None


def _refuse_generator(returned: Any) -> NoReturn:
    raise _core.Error(
        f"main, {returned.__qualname__}, is a generator function and has not run; write `async def main()` "
        "without yield, and `await` what it waits for"
    )


async def _watch() -> None:
    """Ends the job when nothing can happen any more.

    The watch sends no message that the program could notice: quiescence and checkpoints do not count it.
    """
    await _core._standstill()
    _core._fail(_NOTHING_LEFT)


def may_act() -> bool:
    """Whether something on this PE may go on without a message, a sleep or a copy. Called on all PEs."""
    return _threads_may_post() or _signals_may_act()


def _threads_may_post() -> bool:
    """Whether a thread of the program, or a coroutine in asyncio's loop, may still call Weft."""
    asyncio_edge = loaded("weft._await.asyncio_edge")
    if asyncio_edge is not None and asyncio_edge.num_running() > 0:
        return True
    own = {threading.main_thread(), threading.current_thread()}
    if asyncio_edge is not None:
        own.add(asyncio_edge.loop_thread())
    return any(thread not in own for thread in threading.enumerate())


def _signals_may_act() -> bool:
    """Whether the program has a signal handler of its own, which may call weft.exit()."""
    own = (signal.default_int_handler, *HANDLERS)
    return any(
        callable(handler) and handler not in own for handler in map(signal.getsignal, signal.valid_signals())
    )
