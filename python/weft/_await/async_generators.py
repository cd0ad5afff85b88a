"""Asynchronous generators that are left before their end: their ``finally`` runs.

Python hands them to a hook of the thread. Without one, a ``finally`` that awaits would be cut off there.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from weft import _core


@contextlib.contextmanager
def closed_when_left() -> Iterator[None]:
    """While it is open, generators that this thread iterates over are closed when they are dropped."""
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=_finalize)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*before)


async def _close(generator: AsyncGenerator[Any, Any]) -> None:
    await generator.aclose()


def _finalize(generator: AsyncGenerator[Any, Any]) -> None:
    """Runs the ``finally`` up to its first await at once, and the rest as a coroutine of the PE."""
    closing = _close(generator)
    if _core._close_generator(closing):
        return
    if not _core._is_pe_thread():
        try:
            _core.post_from_any_thread(lambda: _finalize(generator))
        except _core.Error:  # no job is running
            pass
        else:
            closing.close()
            return
    # The job is ending or has ended: nothing can be awaited any more.
    try:
        closing.send(None)
    except StopIteration:
        return
    with contextlib.suppress(RuntimeError):  # it awaits in its `finally`
        closing.close()
