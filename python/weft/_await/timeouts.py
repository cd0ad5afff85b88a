"""weft.timeout: waits that end early, on the PE's own thread.

An exception is raised in the coroutine where it waits, and the block turns it into the program's. What has
arrived for the coroutine already is given to it first: the exception then comes with its next wait.
"""

from __future__ import annotations

import math
from types import TracebackType
from typing import NoReturn

from weft import _core


class GivenUp(BaseException):
    """Raised where a coroutine waits, on its way to the block that gives the wait up.

    No Exception, so that ``except Exception`` in the block does not end its way.
    """


class timeout:  # noqa: N801 - used as a function
    """Gives up what the block waits for when a time has passed.

        async with weft.timeout(2):
            reply = await proxy.method.call()

    Whatever the block awaits can be given up: calls, futures, sends and receives, ``weft.gather``,
    ``weft.sleep``, and coroutines that await these. Only the wait ends. A call runs to its end, and its
    outcome is dropped; an exception of it does not end the job. A receive or a send in place goes on, and its
    buffer must not be touched before it is over: keep the operation, which can be awaited again, and ask its
    ``done()``. The coroutines that a ``weft.gather`` runs are given up with it.

    Blocks nest. ``finally`` parts of the block run, and may await.

    Args:
        seconds: from 0 to 1e9; None or infinity for no limit, which `reschedule` may set.

    Raises:
        TimeoutError: at the end of the block, if the time has passed while it waited.
        weft.Error: `cancel()` was called, with the code ``'cancelled'``; or the block is not in a coroutine
            of Weft. A coroutine in an event loop of asyncio uses ``asyncio.timeout``.
    """

    def __init__(self, seconds: float | None) -> None:
        self._check(seconds)
        self._seconds = seconds
        self._coroutine: object = None  # while the block is open
        self._timer: _core._Timer | None = None
        self._signal = GivenUp()
        self._is_cancelled = False
        self._is_given_up = False

    async def __aenter__(self) -> timeout:
        if self._coroutine is not None or self._is_given_up:
            raise _core.Error("a weft.timeout(...) is used for a second block; make one for each")
        self._coroutine = _core._current_coroutine("weft.timeout")
        self._start_timer()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_timer()
        coroutine, self._coroutine = self._coroutine, None
        if error is self._signal:
            self._raise()
        _core._take_back(coroutine, self._signal)

    def reschedule(self, seconds: float | None) -> None:
        """Sets the time anew, from now on; None for no limit. On the PE's thread."""
        self._check(seconds)
        self._seconds = seconds
        if self._coroutine is not None and not self._is_given_up:
            self._stop_timer()
            self._start_timer()

    def cancel(self) -> None:
        """Gives up what the block waits for now, or waits for next; on the PE's thread.

        The block raises weft.Error with the code ``'cancelled'``. Does nothing if the block has ended.
        """
        if self._coroutine is not None and not self._is_given_up:
            self._is_cancelled = True
            self._give_up()

    def expired(self) -> bool:
        """Whether the time has passed while the block was open."""
        return self._is_given_up and not self._is_cancelled

    @staticmethod
    def _check(seconds: float | None) -> None:
        if seconds is None or seconds == math.inf:
            return
        if not isinstance(seconds, (int, float)) or not 0 <= seconds <= 1e9:
            raise _core.Error(f"weft.timeout({seconds!r}): give seconds from 0 to 1e9, or None for no limit")

    def _start_timer(self) -> None:
        if self._seconds is not None and self._seconds != math.inf:
            self._timer = _core._call_later(self._seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._is_given_up = True
        _core._interrupt(self._coroutine, self._signal)

    def _raise(self) -> NoReturn:
        if not self._is_cancelled:
            raise TimeoutError(f"weft.timeout({self._seconds}): the time has passed") from self._signal
        error = _core.Error("cancel() of a weft.timeout was called")
        error.code = "cancelled"
        raise error from self._signal
