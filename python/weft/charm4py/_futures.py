"""Futures of charm4py, and what waits for several of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from weft import _core
from weft.charm4py._threads import wait


class Future:
    """A value that comes later. It travels: any chare may send the value.

    Args:
        num_vals: how many values it gets. With more than one, `get` gives their list, in order of arrival.
    """

    __slots__ = ("_weft",)

    def __init__(self, num_vals: int = 1) -> None:
        self._weft: Any = _core.Future() if num_vals == 1 else _core.Future(num_vals)

    def get(self) -> Any:
        """Blocks until the value is there. An exception that was sent is raised."""
        future = self._weft
        return future.result() if future.done() else wait(future)

    def ready(self) -> bool:
        """Whether `get` would not block."""
        return bool(self._weft.done())

    def send(self, result: Any = None) -> None:
        """Gives the future a value. An exception is raised by `get`."""
        if isinstance(result, Exception):
            self._weft.set_error(result)
        else:
            self._weft.set(result)

    __call__ = send

    def _when_ready(self) -> Any:
        return self._weft

    def __reduce__(self) -> Any:
        return as_future, (self._weft,)


def as_future(future: Any) -> Future:
    """The future of charm4py of one of Weft."""
    made = Future.__new__(Future)
    made._weft = future
    return made


def iwait(awaitables: Iterable[Any]) -> Iterator[Any]:
    """Yields futures and channels in the order in which they become ready; blocks in between."""
    ready: deque[Any] = deque()
    waking: list[Any] = []  # the future that the running method waits for

    def arrived(awaitable: Any) -> None:
        ready.append(awaitable)
        if waking:  # the first of several that arrive before the method runs again
            waking.pop().set()

    num_left = 0
    for awaitable in awaitables:
        num_left += 1
        future = awaitable._when_ready()
        if future.done():
            ready.append(awaitable)
        else:
            future.then(lambda _, which=awaitable: arrived(which))
    for _ in range(num_left):
        if not ready:
            waking.append(_core.Future())
            wait(waking[0])
        yield ready.popleft()


def wait_all(awaitables: Iterable[Any]) -> None:
    """Blocks until all are ready."""
    for awaitable in awaitables:
        future = awaitable._when_ready()
        if not future.done():
            wait(_settled(future))


def _settled(future: Any) -> Any:
    """A future that is ready when `future` is, without its value or exception."""
    settled: Any = _core.Future()
    future.then(lambda _: settled.set(None))
    return settled
