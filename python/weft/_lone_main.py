"""A collective operation that main awaits in a job of weft.run, where main runs on PE 0 alone.

All PEs of a team take part in its collective operations. If main calls one, entry methods or functions of
Team.rpc must call it on the other PEs. Without them main would wait for ever without a word.

A job in which nothing can happen any more ends with a sentence. That is so if

- no message is under way,
- no PE has a pending sleep or copy, or a thread or a signal handler that may act,
- no coroutine or callback exists but main, and main awaits the operation.

If only the first holds and no sleep or copy is pending, a sentence is printed after some time; main waits on.

Operations in place are not watched: their buffers wait at the sender, which counts as messages under way.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from weft import _core
from weft._plain_main import signals_may_act, threads_may_post

# Between two looks at the other PEs.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
# Between the two looks that must find the same. Control messages, such as notes of barriers and decisions of
# load balancing, do not count as under way. They come meanwhile.
_SAME_FOR_S = 0.2
# Where something may still come that cannot be seen, a job that does nothing is reported after so long.
_PATIENCE_S = 10.0

# The coroutines of the job if only main and the watch are there.
_MAIN_AND_WATCH = 2
# PEs in a sentence.
_MOST_NAMED = 8

_PACKAGE = f"{Path(__file__).parent}{os.sep}"
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
    # Of the future that the call has returned. The future is not kept: if it is dropped it reports its error.
    future_id: int
    use: str


class _State(NamedTuple):
    """Of a PE."""

    num_begun: int
    # Whether a sleep or a copy is pending.
    is_waiting: bool
    num_sleeps: int
    # Whether something outside of Weft may act: a thread, asyncio, a signal handler.
    may_act: bool
    # Coroutines and callbacks that have not ended.
    num_code: int


class _Observer(_core.Chare):
    """One per PE."""

    def state(self, leader_pe: int, number: int) -> _State:
        is_waiting, num_sleeps = _core._pending()
        num_begun = _core._collectives_begun(leader_pe, number)
        may_act = threads_may_post() or signals_may_act()
        return _State(num_begun, is_waiting, num_sleeps, may_act, _core._code_waiting())


class Watch:
    """Of one main. It runs while main awaits a collective operation, and ends the job if that cannot end."""

    def __init__(self, main: Any) -> None:
        self._main = main
        self._latest: _Call | None = None
        self._is_running = False
        self._num_sleeps = 0
        self._observers: Any = None

    def begun(self, team: _core.Team, future: _core.Future[Any], use: str) -> Any:
        """PE 0 has begun a collective operation. Returns a coroutine that must be run, or None."""
        self._latest = _Call(team, *_core._team_position(team), id(future), use)
        return None if self._is_running else self._run()

    async def _run(self) -> None:
        self._is_running = True
        try:
            await self._look_after()
        finally:
            self._is_running = False

    async def _look_after(self) -> None:
        call: _Call | None = None
        before: list[_State] | None = None
        pause_s = _FIRST_PAUSE_S
        since = 0.0
        while True:
            self._num_sleeps += 1
            await _core.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            latest = self._latest
            if latest is None or not self._is_awaited(latest):
                return
            if latest is not call:  # there was progress
                call, before = latest, None
            await _core.quiescence()
            states = await self._states(call)
            missing = [pe for pe in call.team.members() if states[pe].num_begun < call.num_begun]
            if not missing or any(state.is_waiting for state in states):
                before = None
            elif states != before:
                before, since = states, time.monotonic()
                pause_s = _SAME_FOR_S
            elif self._is_awaited(call) and _is_all(states):
                _core._fail(self._sentence(call, missing, "nothing can happen any more"))
                return
            elif self._is_awaited(call) and time.monotonic() - since >= _PATIENCE_S:
                print("weft:", self._sentence(call, missing, "no message is under way"), file=sys.stderr)
                return

    async def _states(self, call: _Call) -> list[_State]:
        if self._observers is None:
            self._observers = _core.Group(_Observer)
        own, *others = await self._observers.state.call(call.leader_pe, call.number)
        # Without the pauses of the watch itself.
        return [own._replace(num_sleeps=own.num_sleeps - self._num_sleeps), *others]

    def _chain(self) -> list[Any]:
        """Main, the coroutine that it awaits, and so on; at last what the innermost one awaits."""
        chain = [self._main]
        while hasattr(chain[-1], "cr_await"):
            chain.append(chain[-1].cr_await)
        return chain

    def _is_awaited(self, call: _Call) -> bool:
        return id(self._chain()[-1]) == call.future_id

    def _sentence(self, call: _Call, missing: list[int], why: str) -> str:
        frames = [one.cr_frame for one in self._chain()[:-1]]
        own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_PACKAGE)] or frames
        inner = [_NAMES.get(frame.f_code.co_name) for frame in frames if frame not in own]
        called = next(filter(None, inner), call.use)
        where = f"{Path(own[-1].f_code.co_filename).name}, line {own[-1].f_lineno}"
        names = [str(pe) for pe in missing[:_MOST_NAMED]] + ["..."] * (len(missing) > _MOST_NAMED)
        pes = f"PE {names[0]} has" if len(missing) == 1 else f"PEs {', '.join(names)} have"
        return (
            f"main on PE 0 waits in {called} ({where}), which {pes} not called, and {why}. All PEs of a team "
            "call its collective operations, and weft.run runs main on PE 0 alone. Start the program with "
            "weft.pgas.run(main), which runs main(world) on every PE, or call the operation on every PE, for "
            "example from an entry method of a weft.Group"
        )


def _is_all(states: list[_State]) -> bool:
    """Whether there is nothing in the job but a main that waits."""
    return (
        not any(state.may_act for state in states)
        and sum(state.num_code for state in states) == _MAIN_AND_WATCH
    )
