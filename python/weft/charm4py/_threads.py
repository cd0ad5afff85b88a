"""Methods that block: each runs in a greenlet, which a coroutine of Weft drives.

The coroutine awaits what the greenlet waits for. Weft therefore knows a blocked method as it knows every
coroutine: moves, checkpoints, load times, conditions and hang reports need nothing of their own.

Threads: the PE's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

_F = TypeVar("_F", bound=Callable[..., Any])

_MARK = "__charm4py_blocks__"


class NotThreadedError(Exception):
    """A method that is no coroutine tried to block."""


class EntryThread(greenlet):  # type: ignore[misc]  # greenlet has types only where it is installed
    """The greenlet of a method that may block."""

    __slots__ = ("error", "is_over")

    error: BaseException | None

    def __init__(self, body: Callable[..., Any]) -> None:
        super().__init__(body)
        self.error = None
        self.is_over = False


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


# Threads without a function. A new one costs several times as much as a switch: Python maps a stack for it.
_idle: list[EntryThread] = []
_MAX_IDLE = 64


def _work(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The body of a thread: one function after the other."""
    thread = getcurrent()
    while True:
        result = None
        try:
            result = function(*args, **kwargs)
        except GreenletExit:  # nothing refers to the thread any more
            return
        except BaseException as error:
            thread.error = error
        thread.is_over = True
        del function, args, kwargs
        function, args, kwargs = thread.parent.switch(result)


async def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a function that may block. Returns what it returns."""
    thread = _idle.pop() if _idle else EntryThread(_work)
    thread.is_over = False
    thread.gr_context = copy_context()
    thread.parent = getcurrent()
    step = thread.switch(function, args, kwargs)
    while not thread.is_over:
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
    raised, thread.error = thread.error, None
    if len(_idle) < _MAX_IDLE:
        _idle.append(thread)
    if raised is None:
        return step
    try:
        raise raised
    finally:
        del raised  # its traceback refers to this frame
