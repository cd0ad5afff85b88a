"""A job of a launch whose outcome all PEs get: tests compare it on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _core
from weft._job.run import run_with
from weft._session.outcome import Outcome


class _Receiver(_core.Chare):
    """One per PE."""

    #: (what main returned, what it raised), of the latest job.
    outcome: tuple[Any, BaseException | None] = (None, None)

    def take(self, value: Any, error: BaseException | None) -> None:
        _Receiver.outcome = (value, error)


def run_everywhere(main: Callable[[], Any]) -> Any:
    """Collective. Runs ``main()`` on PE 0, and returns its value on all PEs.

    Args:
        main: a coroutine function, or an ordinary one, with whose return the job ends.

    Raises:
        Exception: what main raised, on all PEs.
        weft.Error: on the other PEs, if the value or the exception cannot be sent to them.
    """
    outcome = Outcome(main)
    _Receiver.outcome = (None, None)

    async def whole() -> None:
        value = await outcome.value()
        receivers = _core.Group(_Receiver)
        try:
            await receivers.take.call(value, outcome.error)
        except _core.Error as problem:
            await receivers.take.call(None, _core.Error(f"PE 0 has the outcome of main alone: {problem}"))
        _Receiver.outcome = (value, outcome.error)

    run_with(_core._run, whole)
    value, error = _Receiver.outcome
    _Receiver.outcome = (None, None)
    if error is not None:
        raise error
    return value
