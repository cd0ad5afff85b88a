"""Waiting for several things at once, on the PE's own thread: no event loop, no other thread.

A wait that ends, early or not, releases its timer.

A future or operation that is waited for has one callback, whatever the number of waits, because nothing can
take a callback back: a wait that ends early takes only its own entry out of `_Watch.waits`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeAlias, TypeVar

from weft import _core
from weft._await.timeouts import GivenUp

_T = TypeVar("_T")
_Thing: TypeAlias = "_core.Future[Any] | _core.Operation[Any]"


class _Watch:
    """What waits for one future or operation that is not done."""

    #: By the identity of the future or operation, which its callback keeps alive.
    known: dict[int, _Watch] = {}  # noqa: RUF012

    def __init__(self, thing: _Thing) -> None:
        self.waits: dict[_Wait, int] = {}
        thing.then(self._end)
        _Watch.known[id(thing)] = self

    def _end(self, thing: _Thing) -> None:
        del _Watch.known[id(thing)]
        for wait, index in self.waits.items():
            wait.end(index)


def end_of_job() -> None:
    """Called when a job has ended: its callbacks are gone, and later futures may get the same identities."""
    _Watch.known.clear()


class _Wait:
    """One wait for some things, in the order in which they are over."""

    def __init__(self, things: list[_Thing], timeout_s: float | None) -> None:
        self.things = things
        self.over: deque[int] = deque()
        self.timed_out = timeout_s is not None and timeout_s <= 0
        self._changed: _core.Future[None] = _core.Future()
        self._watches: list[_Watch] = []
        self._timer: _core._Timer | None = None
        if len({id(thing) for thing in things}) < len(things):
            raise _core.Error("a future or operation is named twice in one wait; name each once")
        try:
            if timeout_s is not None and timeout_s > 0:
                self._timer = _core._call_later(timeout_s, self._time_out)
            for index, thing in enumerate(things):
                if thing.done():
                    self.over.append(index)
                    continue
                watch = _Watch.known.get(id(thing)) or _Watch(thing)
                watch.waits[self] = index
                self._watches.append(watch)
        except BaseException:  # a future of another PE
            self.leave()
            raise

    def end(self, index: int) -> None:
        self.over.append(index)
        self._wake()

    def _time_out(self) -> None:
        self.timed_out = True
        self._wake()

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set()

    async def change(self) -> None:
        """Until more is over, or the time."""
        await self._changed
        self._changed = _core.Future()

    def leave(self) -> None:
        for watch in self._watches:
            watch.waits.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _things(awaitables: Any, function: str) -> list[_Thing]:
    if isinstance(awaitables, (_core.Future, _core.Operation)):  # which can be iterated, as awaiting does
        raise _core.Error(f"weft.{function} takes a list: weft.{function}([call])")
    things: list[_Thing] = list(awaitables)
    for thing in things:
        if not isinstance(thing, (_core.Future, _core.Operation)):
            raise _core.Error(
                f"weft.{function} takes futures and operations, such as proxy.method.call() and "
                f"channel.recv(a), not a {type(thing).__name__}; weft.gather takes coroutines too"
            )
    return things


def _limit_s(timeout: float | None) -> float | None:
    if timeout is None or timeout == math.inf:
        return None
    if not isinstance(timeout, (int, float)) or math.isnan(timeout):
        raise _core.Error(f"timeout is a number of seconds or None, not {timeout!r}")
    return timeout


async def wait(
    awaitables: Iterable[_T], *, timeout: float | None = None, first: bool = False
) -> tuple[list[_T], list[_T]]:
    """Waits until all are over, or the first, or a time has passed. Raises nothing that they raise.

    Other entry methods of the PE run meanwhile. What is still pending goes on, and may be awaited or waited
    for again. An exception of theirs that nothing looks at is dropped. Also for event loops of other threads.

    Args:
        awaitables: futures and operations of this PE, each once.
        timeout: the longest wait in seconds; None for no limit. With 0 it only lets others have their turn.
        first: whether to wait for the first only; others may be over at the same time.

    Returns:
        Those that are over and those that are pending, in the order of `awaitables`.

    Raises:
        weft.Error: not a future or an operation of this PE, or one that is named twice.
    """
    things = _things(awaitables, "wait")
    if not _core._is_pe_thread():
        from weft._await.asyncio_edge import wait_in_loop

        return await wait_in_loop(things, _limit_s(timeout), first)
    waiting = _Wait(things, _limit_s(timeout))
    try:
        enough = min(1, len(things)) if first else len(things)
        if len(waiting.over) < enough and waiting.timed_out:
            await _core.yield_now()  # a loop of looks must let the PE work
        while len(waiting.over) < enough and not waiting.timed_out:
            await waiting.change()
    finally:
        waiting.leave()
    over = set(waiting.over)
    done: list[Any] = [thing for index, thing in enumerate(things) if index in over]
    pending: list[Any] = [thing for index, thing in enumerate(things) if index not in over]
    return done, pending


class as_completed:  # noqa: N801 - used as a function
    """Gives futures and operations as they are over.

    ``async for call in weft.as_completed(calls): print(await call)``. Those that are over already come first.
    Leaving the loop early leaves the others pending.

    Args:
        awaitables: futures and operations of this PE, each once.
        timeout: of the whole loop, in seconds; None for no limit.

    Raises:
        weft.Error: not a future or an operation of this PE, or one that is named twice.
        TimeoutError: the time has passed, and some are pending.
    """

    def __init__(self, awaitables: Iterable[Any], *, timeout: float | None = None) -> None:
        things = _things(awaitables, "as_completed")
        if not _core._is_pe_thread():
            raise _core.Error(
                "weft.as_completed was called on another thread than the PE's; asyncio.as_completed takes "
                "futures and operations of weft there"
            )
        self._waiting = _Wait(things, _limit_s(timeout))
        self._left = len(self._waiting.things)

    def __aiter__(self) -> as_completed:
        return self

    async def __anext__(self) -> Any:
        waiting = self._waiting
        if self._left == 0:
            waiting.leave()
            raise StopAsyncIteration
        while not waiting.over:
            if waiting.timed_out:
                waiting.leave()
                raise TimeoutError(f"{self._left} of {len(waiting.things)} were not over in time")
            await waiting.change()
        self._left -= 1
        return waiting.things[waiting.over.popleft()]

    def _leave(self) -> None:
        self._waiting.leave()

    def __del__(self) -> None:
        if hasattr(self, "_waiting"):  # else the arguments were refused
            self._leave()


class _Branch:
    """A coroutine that gather runs beside others."""

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._awaitable = awaitable
        #: Of its value and its exception.
        self.pair: _core.Future[tuple[Any, Exception | None]] = _core.Future()
        self._coroutine: object = None  # while it runs
        self._signal: GivenUp | None = None
        begun: _core.Future[None] = _core.Future()
        begun.set()
        begun.then(lambda _: self._run())

    async def _run(self) -> None:
        if self._signal is not None:  # before it has begun
            if isinstance(self._awaitable, Coroutine):
                self._awaitable.close()
            return
        self._coroutine = _core._current_coroutine("weft.gather")
        try:
            _core._hand_over(self.pair, (await self._awaitable, None))
        except Exception as error:
            _core._hand_over(self.pair, (None, error))
        except GivenUp as signal:
            if signal is not self._signal:
                raise
        finally:
            self._coroutine = None

    def give_up(self) -> None:
        self._signal = GivenUp()
        if self._coroutine is not None:
            _core._interrupt(self._coroutine, self._signal)

    def result(self) -> Any:
        value, error = self.pair.result()
        if error is not None:
            raise error
        return value


def _start(awaitable: Awaitable[Any]) -> _Thing | _Branch:
    return awaitable if isinstance(awaitable, (_core.Future, _core.Operation)) else _Branch(awaitable)


def _thing(part: _Thing | _Branch) -> _Thing:
    return part.pair if isinstance(part, _Branch) else part


async def gather(*awaitables: Awaitable[_T], return_exceptions: bool = False) -> list[_T]:
    """Waits for all and gives their results in order: ``await weft.gather(a.work.call(), b.work.call())``.

    Nothing starts before the await. The first exception that one of them raises is raised at once; the others
    go on, and their exceptions are dropped. One that is named twice gives its result twice. In an event loop
    of another thread it is asyncio.gather.

    Args:
        awaitables: futures and operations of this PE, coroutines, proxies of new collections. Coroutines run
            side by side on this PE.
        return_exceptions: puts exceptions into the list instead.

    Raises:
        weft.Error: a future of another PE.
    """
    if not _core._is_pe_thread():
        from weft._await.asyncio_edge import gather_in_loop

        return await gather_in_loop(awaitables, return_exceptions)
    parts = [_start(awaitable) for awaitable in awaitables]
    by_thing = {id(_thing(part)): part for part in parts}
    completed = as_completed([_thing(part) for part in by_thing.values()])
    try:
        async for thing in completed:
            if not return_exceptions:
                by_thing[id(thing)].result()
    except GivenUp:
        completed._leave()
        for part in parts:
            if isinstance(part, _Branch):
                part.give_up()
        raise
    results: list[Any] = []
    for part in parts:
        try:
            results.append(part.result())
        except Exception as error:
            if not return_exceptions:
                raise
            results.append(error)
    return results
