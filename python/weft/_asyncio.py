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
    running = asyncio.run_coroutine_threadsafe(_run(coroutine, future), _background_loop())
    running.add_done_callback(lambda ended: _tell_if_never_run(ended, coroutine, future))
    return future


async def _run(coroutine: Coroutine[Any, Any, _T], future: _core.Future[_T]) -> None:
    try:
        _tell(future.set, await coroutine)
    except asyncio.CancelledError as error:
        _tell(future.set_error, _cancellation(coroutine).with_traceback(error.__traceback__))
    except BaseException as error:
        _tell(future.set_error, error)


def _tell_if_never_run(
    ended: concurrent.futures.Future[None], coroutine: Coroutine[Any, Any, _T], future: _core.Future[_T]
) -> None:
    """A task that is cancelled before its first step runs nothing of `_run`, which else swallows it."""
    if ended.cancelled():
        coroutine.close()
        _tell(future.set_error, _cancellation(coroutine))


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

    # Without a job nobody waits any more.
    with contextlib.suppress(_core.Error):
        _core.post_from_any_thread(set_it)


def as_asyncio(awaited: _core.Future[_T] | _core.Operation[_T]) -> asyncio.Future[_T]:
    """An asyncio future that follows a weft.Future or a weft.Operation of this PE.

    Call it in a running event loop.
    """
    loop = asyncio.get_running_loop()
    following: asyncio.Future[_T] = loop.create_future()

    def settle(ready: _core.Future[_T] | _core.Operation[_T]) -> None:
        try:
            value = ready.result()
        except Exception as error:
            loop.call_soon_threadsafe(_settle, following, None, error)
        else:
            loop.call_soon_threadsafe(_settle, following, value, None)

    def follow() -> None:
        try:
            awaited.then(settle)
        except _core.Error as error:  # its job has ended, or an operation has another waiter
            loop.call_soon_threadsafe(_settle, following, None, error)

    _core.post_from_any_thread(follow)
    return following


def _settle(following: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if following.cancelled():
        return
    if error is None:
        following.set_result(value)
    else:
        following.set_exception(error)
