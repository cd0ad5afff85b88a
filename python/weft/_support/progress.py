"""weft.progress_bar: how much of a loop is done, on a terminal and in a log."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

_clock = time.monotonic
_REFRESH_S = 0.1
_LINE_S = 10.0


class ProgressBar(Generic[T]):
    """What `weft.progress_bar` returns: a loop over its items, or a context in which `advance` is called.

    Attributes:
        total: how much there is to do, or None; it may be set at any time.
        done: how much has been done.
    """

    def __init__(self, items: Iterable[T] | AsyncIterable[T] | None, total: float | None, label: str) -> None:
        self.total = total
        self.done: float = 0
        self._items = items
        self._label = label
        self._began_s = self._shown_s = _clock()
        self._is_over = False
        self._display = _display_for(self)

    def advance(self, amount: float = 1) -> None:
        """Counts `amount` as done. Does not block."""
        self.done += amount
        now_s = _clock()
        if now_s - self._shown_s >= self._display.interval_s:
            self._shown_s = now_s
            self._display.show(self)

    def close(self) -> None:
        """Shows the last state and ends the bar. The end of the loop or of the context does so too."""
        if not self._is_over:
            self._is_over = True
            self._display.end(self)

    def __enter__(self) -> ProgressBar[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        if not isinstance(self._items, Iterable):
            raise TypeError("this bar has no items to loop over; give them to weft.progress_bar")
        with self:
            for item in self._items:
                yield item
                self.advance()

    async def __aiter__(self) -> AsyncIterator[T]:
        if not isinstance(self._items, AsyncIterable):
            raise TypeError("this bar has no asynchronous items; give them to weft.progress_bar")
        with self:
            async for item in self._items:
                yield item
                self.advance()

    def __str__(self) -> str:
        """As "cells: 120/1000 (12 %), 35.1/s, 25 s left"."""
        elapsed_s = _clock() - self._began_s
        rate = self.done / elapsed_s if elapsed_s > 0 else 0.0
        text = f"{self._label}: " if self._label else ""
        text += f"{self.done:g}"
        if self.total is not None:
            text += f"/{self.total:g}"
            text += f" ({100 * self.done / self.total:.0f} %)" if self.total > 0 else ""
        text += f", {rate:.3g}/s"
        if self._is_over:
            return f"{text}, {elapsed_s:.1f} s"
        if self.total is not None and rate > 0:
            text += f", {max(self.total - self.done, 0) / rate:.0f} s left"
        return text


def progress_bar(
    items: Iterable[T] | AsyncIterable[T] | None = None,
    *,
    total: float | None = None,
    label: str = "",
) -> ProgressBar[T]:
    """Shows how much of a loop is done, how fast it goes, and how long the rest takes.

        for step in weft.progress_bar(range(1000), label="steps"):
            await cells.step.call()

        async for result in weft.progress_bar(pool.imap(function, files), total=len(files)):
            ...

        with weft.progress_bar(total=num_bytes, label="bytes") as bar:
            async for call in weft.as_completed(calls):
                bar.advance(await call)

    Writes to standard error of this process: a bar if that is a terminal, else a line every 10 s and one at
    the end. It draws in `advance` only, so it needs no thread. Use it in main, or on one PE.

    Args:
        items: what to loop over, with ``for`` or ``async for``; None if the program calls `advance`.
        total: how much there is to do, in the unit of `advance`; None for the length of `items`, if any.
        label: stands before the numbers.
    """
    if total is None and (length := operator.length_hint(items, -1)) >= 0:
        total = length
    return ProgressBar(items, total, label)


class _Lines:
    """For logs."""

    interval_s = _LINE_S

    def show(self, bar: ProgressBar[Any]) -> None:
        print(bar, file=sys.stderr, flush=True)

    end = show


class _Bar:
    """On a terminal."""

    interval_s = _REFRESH_S

    def __init__(self, progress: Progress, bar: ProgressBar[Any]) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=bar.total)
        progress.start()

    def show(self, bar: ProgressBar[Any]) -> None:
        self._progress.update(self._task, completed=bar.done, total=bar.total, description=str(bar))
        self._progress.refresh()

    def end(self, bar: ProgressBar[Any]) -> None:
        self.show(bar)
        self._progress.stop()


def _display_for(bar: ProgressBar[Any]) -> _Lines | _Bar:
    if not sys.stderr.isatty():
        return _Lines()
    # Takes time to import, which a log need not pay.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    return _Bar(Progress(*columns, console=Console(stderr=True), auto_refresh=False), bar)
