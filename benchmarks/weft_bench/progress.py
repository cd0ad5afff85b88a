"""Telling people of launches: a bar on a terminal, else a line for each, so that logs show the time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weft_bench.launches import Teller


@contextlib.contextmanager
def progress_on(console: Console) -> Iterator[Teller]:
    """A bar on `console` while this is entered, or lines on standard error where either is no terminal."""
    if not (console.is_terminal and sys.stderr.isatty()):
        yield Lines()
        return
    with make_progress(console) as progress:
        yield Bar(progress)


def make_progress(console: Console) -> Progress:
    """A bar with the name of what is running, counted in launches."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=console, transient=True)


class Bar(Teller):
    """Moves with each launch."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=0)
        self._expected = 0

    def expect(self, launches: int) -> None:
        self._expected += launches
        self._progress.update(self._task, total=self._expected)

    def started(self, label: str) -> None:
        self._progress.update(self._task, description=label)

    def ended(self, label: str, seconds: float, how: str) -> None:
        self._progress.update(self._task, advance=1)


class Lines(Teller):
    """As "3/15 weft channel, C++: 1.2 s" on standard error."""

    def __init__(self) -> None:
        self._expected = 0
        self._ended = 0

    def expect(self, launches: int) -> None:
        self._expected += launches

    def ended(self, label: str, seconds: float, how: str) -> None:
        self._ended += 1
        text = f"{self._ended}/{self._expected} {label}: {seconds:.1f} s"
        print(f"{text}, {how}" if how else text, file=sys.stderr, flush=True)
