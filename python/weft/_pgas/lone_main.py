"""A collective operation that main awaits in a job of weft.run, where main runs on PE 0 alone.

All PEs of a team take part in its collective operations. If main calls one, entry methods or functions of
Team.rpc must call it on the other PEs. Without them main waits for ever, so a sentence is printed if they
have not come after some time. Main waits on: they may still come.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from weft import _core

_TIMEOUT_S = 5.0
# PEs in a sentence.
_MOST_NAMED = 8

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
# Coroutines of weft.pgas that call collective operations.
_NAMES = {"make_array": "weft.pgas.make_array", "release": "GlobalArray.release"}


class _Call(NamedTuple):
    """A collective operation that PE 0 has begun."""

    team: _core.Team
    # The PE and the number that name the team.
    leader_pe: int
    number: int
    # How many the PE has begun on the team, this one included.
    num_begun: int
    # The number of the future that the call has returned. The future is not kept: if it is dropped it reports
    # its error.
    future_id: int
    use: str


class _Observer(_core.Chare):
    """One per PE."""

    def collectives_begun(self, leader_pe: int, number: int) -> int:
        return _core._collectives_begun(leader_pe, number)


class Watch:
    """Of one main. It runs while main awaits a collective operation."""

    def __init__(self, main: Any) -> None:
        self._main = main
        self._latest: _Call | None = None
        self._is_running = False

    def begun(self, team: _core.Team, future: _core.Future[Any], use: str) -> Any:
        """PE 0 has begun a collective operation. Returns a coroutine that must be run, or None."""
        self._latest = _Call(team, *_core._team_position(team), id(future), use)
        return None if self._is_running else self._run()

    async def _run(self) -> None:
        self._is_running = True
        try:
            before: _Call | None = None
            while (call := self._latest) is not None and (call is not before or not await self._report(call)):
                before = call
                await _core.sleep(_TIMEOUT_S)
                if not self._is_awaited(self._latest):
                    return
        finally:
            self._is_running = False

    async def _report(self, call: _Call) -> bool:
        """Prints a sentence if PEs have not begun the operation. Returns whether it has."""
        observers: Any = _core.Group(_Observer)
        begun = await observers.collectives_begun.call(call.leader_pe, call.number)
        missing = [pe for pe in call.team.members() if begun[pe] < call.num_begun]
        if not missing or not self._is_awaited(call):
            return False
        with contextlib.suppress(OSError, ValueError):  # stderr is full or closed: the job goes on
            print("weft:", self._sentence(call, missing), file=sys.stderr)
        return True

    def _chain(self) -> list[Any]:
        """Main, the coroutine that it awaits, and so on; at last what the innermost one awaits."""
        chain = [self._main]
        while hasattr(chain[-1], "cr_await"):
            chain.append(chain[-1].cr_await)
        return chain

    def _is_awaited(self, call: _Call | None) -> bool:
        return call is not None and id(self._chain()[-1]) == call.future_id

    def _sentence(self, call: _Call, missing: list[int]) -> str:
        frames = [one.cr_frame for one in self._chain()[:-1]]
        own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_PACKAGE)] or frames
        inner = [_NAMES.get(frame.f_code.co_name) for frame in frames if frame not in own]
        called = next(filter(None, inner), call.use)
        where = f"{Path(own[-1].f_code.co_filename).name}, line {own[-1].f_lineno}"
        names = [str(pe) for pe in missing[:_MOST_NAMED]] + ["..."] * (len(missing) > _MOST_NAMED)
        pes = f"PE {names[0]} has" if len(missing) == 1 else f"PEs {', '.join(names)} have"
        return (
            f"main on PE 0 waits in {called} ({where}), which {pes} not called. All PEs of a team call its "
            "collective operations, and weft.run runs main on PE 0 alone. Start the program with "
            "weft.pgas.run(main), which runs main(world) on every PE, or call the operation on every PE, for "
            "example from an entry method of a weft.Group"
        )
