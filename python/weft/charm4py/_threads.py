"""Methods that block: each runs in a greenlet, which a coroutine of Weft drives.

The coroutine awaits what the greenlet waits for. Weft therefore knows a blocked method as it knows every
coroutine: moves, checkpoints, load times, conditions and hang reports need nothing of their own.

Threads: the PE's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

_F = TypeVar("_F", bound=Callable[..., Any])

_MARK = "__charm4py_blocks__"


class NotThreadedError(Exception):
    """A method that is no coroutine tried to block."""


class EntryThread(greenlet):  # type: ignore[misc]  # greenlet has types only where it is installed
    """The greenlet of a method that may block."""

    __slots__ = ()


def coro(function: _F) -> _F:
    """Decorator: the method, or the function of a task, may block (``get()``, ``recv()``, ``wait()``)."""
    setattr(function, _MARK, True)
    return function


def coro_ext(event_notify: bool = False) -> Callable[[_F], _F]:
    """As `coro`. The argument is accepted and has no effect: Weft tells its scheduler itself."""
    return coro


def blocks(function: object) -> bool:
    """Whether a function is decorated with `coro`."""
    return getattr(function, _MARK, False)


def in_thread() -> bool:
    """Whether the running code may block."""
    return type(getcurrent()) is EntryThread


def wait(awaitable: Any) -> Any:
    """Blocks the running method until the awaitable is ready, and returns its value. The PE goes on.

    Raises:
        NotThreadedError: the running method is no coroutine.
    """
    current = getcurrent()
    if type(current) is not EntryThread:
        raise NotThreadedError(
            "a method that blocks (get(), recv(), wait()) must be a coroutine: decorate it with @coro"
        )
    return current.parent.switch(awaitable)


async def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a function that may block. Returns what it returns."""
    thread = EntryThread(function)
    step = thread.switch(*args, **kwargs)
    while not thread.dead:
        try:
            value = await step
        except GeneratorExit:  # the job ends
            raise
        except BaseException as error:
            thread.parent = getcurrent()
            step = thread.throw(error)
        else:
            thread.parent = getcurrent()
            step = thread.switch(value)
    return step
