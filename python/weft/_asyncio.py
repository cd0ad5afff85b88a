"""The edge to asyncio: its coroutines run on a thread of their own, entry methods on the PE's.

Entry methods await what Weft makes. What asyncio makes is awaited through ``asyncio_future``; code that runs
in an event loop awaits what Weft makes through ``as_asyncio``. Each crossing costs a thread switch, so keep
them off hot paths.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from weft import _core

_T = TypeVar("_T")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="weft-asyncio", daemon=True).start()
        return _loop


def asyncio_future(coroutine: Coroutine[Any, Any, _T]) -> _core.Future[_T]:
    """Runs an asyncio coroutine on Weft's background event loop and returns a weft.Future of its result.

    ``text = await weft.asyncio_future(fetch(url))`` in an entry method lets the PE go on with others
    meanwhile. An exception arrives as weft.RemoteError.
    """
    future: _core.Future[_T] = _core.Future()
    running = asyncio.run_coroutine_threadsafe(coroutine, _background_loop())
    running.add_done_callback(
        lambda ended: _core.post_from_any_thread(functools.partial(_set_from, future, ended))
    )
    return future


def _set_from(future: _core.Future[_T], ended: concurrent.futures.Future[_T]) -> None:
    error = ended.exception()
    if error is None:
        future.set(ended.result())
    else:
        future.set_error(error)


def as_asyncio(future: _core.Future[_T]) -> asyncio.Future[_T]:
    """An asyncio future that follows a weft.Future of this PE; call it in a running event loop."""
    loop = asyncio.get_running_loop()
    following: asyncio.Future[_T] = loop.create_future()

    def settle(ready: _core.Future[_T]) -> None:
        try:
            value = ready.result()
        except Exception as error:
            loop.call_soon_threadsafe(_settle, following, None, error)
        else:
            loop.call_soon_threadsafe(_settle, following, value, None)

    _core.post_from_any_thread(lambda: future.then(settle))
    return following


def _settle(following: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if following.cancelled():
        return
    if error is None:
        following.set_result(value)
    else:
        following.set_exception(error)
