"""The edge to asyncio: its coroutines run on a thread of their own, entry methods on the PE's.

Entry methods await what Weft makes. What asyncio makes is awaited through ``asyncio_future``; code that runs
in an event loop awaits what Weft makes through ``as_asyncio``. Each crossing costs a thread switch, so keep
them off hot paths.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
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
# Futures of as_asyncio that are not settled, with their loops.
_following: dict[asyncio.Future[Any], asyncio.AbstractEventLoop] = {}


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


def as_asyncio(awaited: _core.Future[_T] | _core.Operation[_T]) -> asyncio.Future[_T]:
    """An asyncio future that follows a weft.Future or a weft.Operation of this PE.

    Call it in a running event loop; it does not block. When the job ends first, the asyncio future raises
    weft.Error with the code ``'closed'``. When the loop has closed first, the outcome is dropped.

    Args:
        awaited: what is followed; it may have other waiters and callbacks.

    Returns:
        A future of the running loop. It gives the value, or raises what `awaited` raises.

    Raises:
        RuntimeError: no event loop runs in this thread.
        weft.Error: no job is running.
    """
    loop = asyncio.get_running_loop()
    following: asyncio.Future[_T] = loop.create_future()

    def settle(ready: _core.Future[_T] | _core.Operation[_T]) -> None:
        try:
            value = ready.result()
        except Exception as error:
            _settle_soon(following, None, error)
        else:
            _settle_soon(following, value, None)

    def follow() -> None:
        try:
            awaited.then(settle)
        except _core.Error as error:  # its job has ended
            _settle_soon(following, None, error)

    # Listed before the PE knows of it: a job that ends from here on settles it.
    with _lock:
        _following[following] = loop
    try:
        _core.post_from_any_thread(follow)
    except BaseException:
        _forget(following)
        raise
    following.add_done_callback(_forget)
    return following


def _forget(following: asyncio.Future[Any]) -> None:
    with _lock:
        _following.pop(following, None)


def _settle_soon(following: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    """Settles it in its loop's thread, if that loop has not closed."""
    with _lock:
        loop = _following.get(following)
    if loop is None:
        return
    try:
        loop.call_soon_threadsafe(_settle, following, value, error)
    except RuntimeError:
        if not loop.is_closed():
            raise
        _forget(following)


def _settle(following: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if following.done():
        return
    if error is None:
        following.set_result(value)
    else:
        following.set_exception(error)


def end_of_job() -> None:
    """Called when a job has ended: settles the futures of as_asyncio that are still pending."""
    with _lock:
        pending = list(_following)
    for following in pending:
        error = _core.Error(
            "the job ended before the awaitable of weft that this asyncio future follows was ready"
        )
        error.code = "closed"
        _settle_soon(following, None, error)
