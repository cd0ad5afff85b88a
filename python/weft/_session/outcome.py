"""What became of a main, for its caller: a value, or the exception itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from weft import _core


class Outcome:
    """Of the main of one job, which ends well even if main raises: the other PEs end in order."""

    def __init__(self, main: Callable[[], Any]) -> None:
        self._main = main
        self._error: BaseException | None = None

    def start(self) -> Any:
        """Calls main: what weft.run is to run in its place."""
        try:
            made = self._main()
        except Exception as error:
            self._keep(error)
            _core.exit(0)
            return None
        return self._finish(made) if inspect.iscoroutine(made) else made

    async def _finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await coroutine
        except Exception as error:
            self._keep(error)
            return None

    def _keep(self, error: Exception) -> None:
        # Without this class's own frame.
        self._error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)

    def raise_error(self) -> None:
        """Raises what main raised."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # or it would refer to itself through this frame
