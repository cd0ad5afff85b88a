"""The launches of a bench: told one by one, ended by a limit or a signal, their records kept as they come.

A bench makes all its launches through one `Launches`. When the time is over, or a signal asks the process to
end, `Stopped` is raised: at the next launch, or during a launch that is under way. The figures are then made
from the records taken so far. Used by the main thread only.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TypeVar

from weft_bench.record import Record, write_records

Result = TypeVar("Result")
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """No further launch; the text says why. No error, so that nothing treats it as one."""


class Teller:
    """Is told what goes on; this one keeps it to itself."""

    def expect(self, launches: int) -> None:
        """So many launches follow, if none fails."""

    def started(self, label: str) -> None: ...

    def ended(self, label: str, seconds: float, how: str) -> None:
        """`how` is "" for a launch that went well, else a word or two."""


class Launches:
    """Makes launches for at most `limit_s` seconds from now, and writes records to `file` if there is one."""

    def __init__(
        self,
        limit_s: float = math.inf,
        file: Path | None = None,
        teller: Teller | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.teller = teller or Teller()
        self._clock = clock
        self._file = file
        self._deadline = self._part_deadline = clock() + limit_s
        self._kept: list[Record] = []
        self._last: list[Record] = []
        self._launching = False
        #: That ended them; None while none did.
        self.signal: signal.Signals | None = None

    def begin_part(self, parts_left: int = 1) -> None:
        """What follows is the first of `parts_left` parts that share the time that is left."""
        self._kept += self._last
        self._last = []
        now = self._clock()
        self._part_deadline = now + max(0.0, self._deadline - now) / parts_left

    def run(self, label: str, function: Callable[[], Result]) -> Result:
        """What `function`, which launches something and waits for its end, returns or raises.

        Raises:
            Stopped: it was not called, or interrupted.
        """
        if self.signal is not None:
            raise Stopped(f"ended by {self.signal.name}")
        start = self._clock()
        if start >= self._part_deadline:
            raise Stopped("the time is over")
        self.teller.started(label)
        how = "failed"
        try:
            self._launching = True
            result = function()
            how = ""
            return result
        except Stopped:
            how = "interrupted"
            raise
        finally:
            self._launching = False
            self.teller.ended(label, self._clock() - start, how)

    def keep(self, records: Iterable[Record]) -> None:
        """Write all that there is: the `records` of this part so far, behind those of the parts before it."""
        self._last = list(records)
        if self._file is not None:
            write_records(self._file, [*self._kept, *self._last])

    def exit_status(self, otherwise: int) -> int:
        """Of the process: that of a program which a signal ended, or `otherwise`."""
        return otherwise if self.signal is None else 128 + self.signal

    @contextlib.contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """Inside, SIGINT and SIGTERM end the launches, also one under way; a second one does as ever."""
        before = {number: signal.getsignal(number) for number in _ENDING_SIGNALS}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def end(number: int, _: FrameType | None) -> None:
            restore()
            self.signal = signal.Signals(number)
            if self._launching:
                raise Stopped(f"ended by {self.signal.name}")

        for number in _ENDING_SIGNALS:
            signal.signal(number, end)
        try:
            yield
        finally:
            restore()


def what_was_taken(counts: Mapping[str, int], runs: int) -> str:
    """For people: how many of `runs` runs there are, by label, and who has none."""
    some = sorted({count for count in counts.values() if count})
    least_to_most = " to ".join(str(count) for count in dict.fromkeys((some[0], some[-1]))) if some else "0"
    none = [label for label, count in counts.items() if not count]
    return f"{least_to_most} of {runs} runs" + (f", none of: {'; '.join(none)}" if some and none else "")
