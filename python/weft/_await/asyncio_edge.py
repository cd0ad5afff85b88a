"""The edge to asyncio and to other threads: they run beside the PE's thread, which runs entry methods.

Entry methods await what Weft makes. What asyncio makes is awaited through ``asyncio_future``. Coroutines in
an event loop of another thread await futures and operations of Weft directly, or make asyncio futures of them
with ``as_asyncio``; threads without a loop use ``as_concurrent``.

A crossing costs a thread switch. Crossings that come together share one: the PE reads all its mail in one
turn, and it wakes a loop once for all outcomes that the loop has not taken (`_Inbox`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from weft import _core

_T = TypeVar("_T")


class _LoopThread(threading.Thread):
    """Runs an event loop as long as the process lives, whatever its tasks raise."""

    def __init__(self) -> None:
        super().__init__(name="weft-asyncio", daemon=True)
        self.loop = asyncio.new_event_loop()

    def run(self) -> None:
        while True:
            # A task that raises one of these fails like others, but asyncio leaves the loop besides.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()


_lock = threading.Lock()
_thread: _LoopThread | None = None
# Coroutines of asyncio_future that have not ended.
_num_running = 0


def _background_loop() -> asyncio.AbstractEventLoop:
    global _thread
    with _lock:
        # A forked process has the object without its thread.
        if _thread is None or not _thread.is_alive():
            _thread = _LoopThread()
            _thread.start()
        return _thread.loop


def asyncio_future(coroutine: Coroutine[Any, Any, _T]) -> _core.Future[_T]:
    """Runs an asyncio coroutine on Weft's background event loop and returns a weft.Future of its result.

    ``text = await weft.asyncio_future(fetch(url))`` in an entry method lets the PE go on with others
    meanwhile. Whatever it raises arrives as weft.RemoteError, SystemExit and that it was cancelled too.

    An entry method itself cannot use ``asyncio.gather`` and its like: it starts all calls, then awaits their
    futures one after the other. A coroutine run here can, on ``weft.as_asyncio(future)`` too.
    """
    if not asyncio.iscoroutine(coroutine):
        raise _core.Error(
            f"weft.asyncio_future takes a coroutine, not a {type(coroutine).__name__}; "
            "call the async function"
        )
    future: _core.Future[_T] = _core.Future()
    _count_running(1)
    running = asyncio.run_coroutine_threadsafe(_run(coroutine, future), _background_loop())
    running.add_done_callback(lambda ended: _ended(ended, coroutine, future))
    return future


def _count_running(change: int) -> None:
    global _num_running
    with _lock:
        _num_running += change


def num_running() -> int:
    """How many coroutines of asyncio_future have not ended."""
    return _num_running


def loop_thread() -> threading.Thread | None:
    """The thread of the loop that asyncio_future uses; None before its first use."""
    return _thread


async def _run(coroutine: Coroutine[Any, Any, _T], future: _core.Future[_T]) -> None:
    try:
        # The object itself: it stays on this PE, and need not be one that travels.
        _tell(lambda value: _core._hand_over(future, value), await coroutine)
    except asyncio.CancelledError as error:
        _tell(future.set_error, _cancellation(coroutine).with_traceback(error.__traceback__))
    except BaseException as error:
        _tell(future.set_error, error)


def _ended(
    ended: concurrent.futures.Future[None], coroutine: Coroutine[Any, Any, _T], future: _core.Future[_T]
) -> None:
    """A task that is cancelled before its first step runs nothing of `_run`; its future is settled here."""
    if ended.cancelled():
        coroutine.close()
        _tell(future.set_error, _cancellation(coroutine))
    _count_running(-1)


def _cancellation(coroutine: Coroutine[Any, Any, Any]) -> asyncio.CancelledError:
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    return asyncio.CancelledError(f"the coroutine {name} was cancelled")


def _tell(setter: Callable[[Any], None], outcome: object) -> None:
    """Calls ``setter(outcome)`` on the PE's thread, or not at all when the future's job has ended."""

    def set_it() -> None:
        try:
            setter(outcome)
        except _core.Error as error:
            if error.code != "closed":
                raise

    # If the job has ended, the future has no waiter any more.
    with contextlib.suppress(_core.Error):
        _core.post_from_any_thread(set_it)


class _Inbox:
    """Outcomes for the futures of one event loop, on their way from the PE's thread to the loop's."""

    def __init__(self) -> None:
        #: Not settled. The job settles them if it ends first.
        self.following: set[asyncio.Future[Any]] = set()
        self._outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        self._is_waking = False

    def put(self, following: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        """On the PE's thread."""
        self._outcomes.append((following, value, error))
        if self._is_waking:  # and the loop has not taken the outcomes
            return
        self._is_waking = True
        loop = following.get_loop()
        try:
            loop.call_soon_threadsafe(self._take)
        except RuntimeError:
            if not loop.is_closed():
                raise
            self._outcomes.clear()
            self.following.clear()

    def _take(self) -> None:
        """On the loop's thread."""
        self._is_waking = False  # what is put from here on wakes the loop again
        outcomes, self._outcomes = self._outcomes, []
        for following, value, error in outcomes:
            self.following.discard(following)
            if following.done():  # cancelled
                continue
            if error is None:
                following.set_result(value)
            else:
                following.set_exception(error)


#: Of each event loop that has followed something. Changed and listed under _lock.
_inboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Inbox] = weakref.WeakKeyDictionary()
#: Futures of as_concurrent that are not settled.
_concurrent: set[concurrent.futures.Future[Any]] = set()


def as_asyncio(awaited: _core.Future[_T] | _core.Operation[_T]) -> asyncio.Future[_T]:
    """An asyncio future that follows a weft.Future or a weft.Operation of this PE.

    Call it in a running event loop; it does not block. ``await call`` in a coroutine of another thread's loop
    does the same, and so do ``asyncio.wait_for(call, 1)`` and ``asyncio.gather(*calls)``. A cancelled future
    stops following; the call goes on, and its outcome is dropped.

    When the job ends first, the asyncio future raises weft.Error with the code ``'closed'``. When the loop
    has closed first, the outcome is dropped.

    Args:
        awaited: what is followed; it may have other waiters and callbacks.

    Returns:
        A future of the running loop. It gives the value, or raises what `awaited` raises.

    Raises:
        weft.Error: no event loop runs in this thread, or no job is running.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise _core.Error(
            "no event loop of asyncio runs in this thread; a thread without one waits with "
            "weft.as_concurrent(future).result(), an entry method with await"
        ) from None
    inbox = _inboxes.get(loop)
    if inbox is None:
        with _lock:
            inbox = _inboxes.setdefault(loop, _Inbox())
    following: asyncio.Future[_T] = loop.create_future()
    # Listed before the PE knows of it: a job that ends from here on settles it.
    inbox.following.add(following)
    try:
        _core._follow(awaited, inbox.put, following)
    except BaseException:
        inbox.following.discard(following)
        raise
    return following


def follow(awaited: _core.Future[_T] | _core.Operation[_T]) -> asyncio.Future[_T]:
    """What a coroutine in an event loop yields while it awaits `awaited`."""
    following = as_asyncio(awaited)
    following._asyncio_future_blocking = True  # as in Future.__await__
    return following


async def gather_in_loop(awaitables: Iterable[Awaitable[_T]], return_exceptions: bool) -> list[_T]:
    """weft.gather in an event loop of another thread."""
    followed: dict[int, asyncio.Future[Any]] = {}
    for awaitable in awaitables:
        if isinstance(awaitable, (_core.Future, _core.Operation)):
            followed.setdefault(id(awaitable), as_asyncio(awaitable))
    results: list[_T] = await asyncio.gather(
        *[followed.get(id(awaitable), awaitable) for awaitable in awaitables],
        return_exceptions=return_exceptions,
    )
    return results


async def wait_in_loop(
    things: list[Any], timeout_s: float | None, first: bool
) -> tuple[list[Any], list[Any]]:
    """weft.wait in an event loop of another thread."""
    left = [as_asyncio(thing) for thing in things if not thing.done()]
    try:
        if left and not (first and len(left) < len(things)):
            when = asyncio.FIRST_COMPLETED if first else asyncio.ALL_COMPLETED
            await asyncio.wait(left, timeout=timeout_s, return_when=when)
        else:
            await asyncio.sleep(0)
    finally:
        for following in left:
            if following.done():
                following.exception()  # as in an entry method: what nothing looks at is dropped
            else:
                following.cancel()
    over = [thing.done() for thing in things]
    pending = [not done for done in over]
    return list(itertools.compress(things, over)), list(itertools.compress(things, pending))


def as_concurrent(awaited: _core.Future[_T] | _core.Operation[_T]) -> concurrent.futures.Future[_T]:
    """A future of `concurrent.futures` that follows a weft.Future or a weft.Operation of this PE.

    A thread without an event loop waits with it: ``weft.as_concurrent(proxy.method.call()).result(5)``.
    Never wait so on the PE's own thread, which must go on for the result to come: await there. A cancelled
    future stops following; the call goes on, and its outcome is dropped.

    Args:
        awaited: what is followed; it may have other waiters and callbacks.

    Returns:
        A future that gives the value, or raises what `awaited` raises. Its callbacks run on the PE's thread.
        When the job ends first, it raises weft.Error with the code ``'closed'``.

    Raises:
        weft.Error: no job is running.
    """
    following: concurrent.futures.Future[_T] = concurrent.futures.Future()
    _concurrent.add(following)
    try:
        _core._follow(awaited, _settle_concurrent, following)
    except BaseException:
        _concurrent.discard(following)
        raise
    return following


def _settle_concurrent(
    following: concurrent.futures.Future[Any], value: Any, error: BaseException | None
) -> None:
    _concurrent.discard(following)
    if not following.set_running_or_notify_cancel():
        return
    if error is None:
        following.set_result(value)
    else:
        following.set_exception(error)


def _closed() -> _core.Error:
    error = _core.Error("the job ended before the future or operation of weft was ready that was waited for")
    error.code = "closed"
    return error


def end_of_job() -> None:
    """Called when a job has ended: settles the futures that are still pending."""
    with _lock:
        inboxes = list(_inboxes.values())
    for inbox in inboxes:
        for following in list(inbox.following):
            inbox.put(following, None, _closed())
    for waited in list(_concurrent):
        _settle_concurrent(waited, None, _closed())
