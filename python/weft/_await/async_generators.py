"""Asynchronous generators that are left before their end: their ``finally`` runs.

Python hands them to a hook of the thread. Without one, a ``finally`` that awaits would be cut off there.

A generator that is dropped ends in the context of the coroutine that drops it. The garbage collector runs
inside any other code, so a generator that it finds ends as code of the chare in which it began, and in the
context in which it began if that is still there. The context is not kept alive: it may hold the generator.
"""

from __future__ import annotations

import contextlib
import contextvars
import gc
import sys
import weakref
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from weft import _core

_Generator = AsyncGenerator[Any, Any]
# A context, and the chare whose code runs: the collection and the index.
_Origin = tuple[contextvars.Context | None, int, int]


class _Begun(weakref.ref[_Generator]):
    """Where a generator began. Python calls `_note_found` before the finalizer of the generator."""

    __slots__ = ("chare", "context", "number")

    number: int  # id() of the generator
    context: weakref.ref[contextvars.Context] | None
    chare: tuple[int, int]

    def origin(self) -> _Origin:
        return (self.context() if self.context is not None else None, *self.chare)


class _Collector:
    """The garbage collector of Python while a job runs."""

    def __init__(self) -> None:
        self._is_running = False
        self._begun: set[_Begun] = set()
        # By the id of a generator that the collector has found and not yet finalized.
        self._found: dict[int, _Origin] = {}

    def note_begun(self, generator: _Generator) -> None:
        begun = _Begun(generator, self._note_found)
        begun.number = id(generator)
        context, *chare = _core._origin()
        begun.context = weakref.ref(context) if context is not None else None
        begun.chare = (chare[0], chare[1])
        self._begun.add(begun)

    def _note_found(self, begun: _Begun) -> None:
        self._begun.discard(begun)
        if self._is_running:
            self._found[begun.number] = begun.origin()

    def note_phase(self, phase: str, _: dict[str, int]) -> None:
        self._is_running = phase == "start"
        self._found.clear()

    def origin_of(self, generator: _Generator) -> _Origin | None:
        """Where the generator began if the collector has found it; else None."""
        return self._found.pop(id(generator), None)


@contextlib.contextmanager
def closed_when_left() -> Iterator[None]:
    """While it is open, generators that this thread iterates over are closed when they are dropped."""
    before = sys.get_asyncgen_hooks()
    collector = _Collector()
    gc.callbacks.append(collector.note_phase)
    sys.set_asyncgen_hooks(
        firstiter=collector.note_begun,
        finalizer=lambda generator: _finalize(generator, collector.origin_of(generator)),
    )
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*before)
        gc.callbacks.remove(collector.note_phase)


async def _close(generator: _Generator) -> None:
    await generator.aclose()


def _finalize(generator: _Generator, origin: _Origin | None) -> None:
    """Runs the ``finally`` up to its first await at once, and the rest as a coroutine of the PE."""
    closing = _close(generator)
    if _core._close_generator(closing, origin):
        return
    if not _core._is_pe_thread():
        try:
            _core.post_from_any_thread(lambda: _finalize(generator, origin))
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
