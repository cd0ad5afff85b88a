"""Methods that block: each runs in a greenlet, which a coroutine of Weft drives.

The coroutine awaits what the greenlet waits for. Weft therefore knows a blocked method as it knows every
coroutine: moves, checkpoints, load times, conditions and hang reports need nothing of their own.

Threads: the PE's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from weft._pool.members import TASK_RUNNER

_F = TypeVar("_F", bound=Callable[..., Any])

_MARK = "__charm4py_blocks__"
_NO_OUTCOME = (None, None)


class NotThreadedError(Exception):
    """A method that is no coroutine tried to block."""


class EntryThread(greenlet):
    """The greenlet of a method that may block.

    No frame that runs in it may refer to it: a method that is abandoned ends because nothing does.
    """

    __slots__ = ("is_over", "outcome")

    outcome: tuple[Any, BaseException | None]

    def __init__(self) -> None:
        super().__init__(_work)
        self.outcome = _NO_OUTCOME
        self.is_over = False
        self.switch()  # greenlet keeps the arguments of the first switch until the thread ends


def coro(function: _F) -> _F:
    """Decorator: the method, or the function of a task, may block (``get()``, ``recv()``, ``wait()``)."""
    setattr(function, _MARK, True)
    setattr(function, TASK_RUNNER, _driven)
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


def expect_thread() -> None:
    """Raises NotThreadedError unless the running code may block."""
    if not in_thread():
        raise NotThreadedError(
            "a method that blocks (get(), recv(), wait()) must be a coroutine: decorate it with @coro"
        )


def wait(awaitable: Any) -> Any:
    """Blocks the running method until the awaitable is ready, and returns its value. The PE goes on.

    Raises:
        NotThreadedError: the running method is no coroutine.
    """
    if type(getcurrent()) is not EntryThread:
        expect_thread()
    return getcurrent().parent.switch(awaitable)


class _Idle(threading.local):
    """Entry threads without a function. A greenlet runs only on the thread of the process that has made it.

    A new one costs several times as much as a switch: Python maps a stack for it.
    """

    def __init__(self) -> None:
        self.threads: list[EntryThread] = []


_idle = _Idle()
_MAX_IDLE = 64


def _work() -> None:
    """The body of a thread: one function after the other."""
    while True:
        function, args, kwargs = getcurrent().parent.switch()
        error = None
        try:
            result = function(*args, **kwargs)
        except GreenletExit:  # nothing refers to the thread any more
            return
        except BaseException as raised:
            result, error = None, raised
        del function, args, kwargs
        getcurrent().is_over, getcurrent().outcome = True, (result, error)
        del result, error  # an idle thread keeps nothing of the last function


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
    """Runs a function that may block. Returns a coroutine of what it returns."""
    return _driven(None, function, args, kwargs)


async def _driven(
    waits: Callable[[], None] | None,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """As `run`; calls waits(), if there is one, each time that the function begins to wait."""
    idle = _idle.threads
    thread = idle.pop() if idle else EntryThread()
    thread.is_over = False
    thread.gr_context = copy_context()
    thread.parent = getcurrent()
    step = thread.switch(function, args, kwargs)
    while not thread.is_over:
        if waits is not None:
            waits()
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
    (result, raised), thread.outcome = thread.outcome, _NO_OUTCOME
    if len(idle) < _MAX_IDLE:
        thread.gr_context = None
        idle.append(thread)
    if raised is None:
        return result
    try:
        raise raised
    finally:
        del raised  # its traceback refers to this frame
