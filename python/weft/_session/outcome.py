"""What became of a main, for its caller: a value, or the exception itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from weft import _core

# They end a job in ways of their own.
_ENDS_JOB = (GeneratorExit, KeyboardInterrupt, SystemExit)


class Outcome:
    """Of the main of one job, which ends well even if main raises: the other PEs end in order."""

    def __init__(self, main: Callable[[], Any]) -> None:
        self._main = main
        #: What main raised.
        self.error: BaseException | None = None

    def start(self) -> Any:
        """Calls main: what weft.run is to run in its place. An ordinary main ends with weft.exit()."""
        try:
            made = self._main()
        except _ENDS_JOB:
            raise
        except BaseException as error:  # those of pytest.fail() and pytest.skip() are no Exception
            self._keep(error)
            _core.exit(0)
            return None
        return self._finish(made) if inspect.iscoroutine(made) else made

    async def value(self) -> Any:
        """What main returns; None if it raises. The return of an ordinary main ends it too."""
        try:
            made = self._main()
        except _ENDS_JOB:
            raise
        except BaseException as error:  # those of pytest.fail() and pytest.skip() are no Exception
            self._keep(error)
            return None
        return await self._finish(made) if inspect.iscoroutine(made) else made

    async def _finish(self, coroutine: Any) -> Any:
        try:
            return await coroutine
        except _ENDS_JOB:
            raise
        except BaseException as error:  # those of pytest.fail() and pytest.skip() are no Exception
            self._keep(error)
            return None

    def _keep(self, error: BaseException) -> None:
        # Without this class's own frame.
        self.error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)

    def raise_error(self) -> None:
        """Raises what main raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # or it would refer to itself through this frame
