"""PGAS programs: one main on every PE, teams of PEs, calls of functions and distributed objects.

    import weft
    import weft.pgas

    def add(a, b):
        return a + b

    async def main(world):
        next_rank = (world.rank + 1) % world.size
        print(await world.rpc(next_rank, add, world.rank, 100))
        print(await world.allreduce(world.rank, weft.Reducer.sum))

    weft.pgas.run(main)

``weft run -n 4 app.py`` runs main on four PEs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

from weft import _core
from weft._core import DistObject, Team
from weft._run import run_with

__all__ = ["DistObject", "Team", "run", "world"]

_T = TypeVar("_T")


@overload
def run(main: Callable[[Team], Coroutine[Any, Any, _T]]) -> _T | None: ...
@overload
def run(main: Callable[[Team], _T]) -> _T | None: ...
def run(main: Callable[[Team], Any]) -> Any:
    """Runs a job: collective over its PEs, each of which calls it once with the same `main`.

    ``main(world)`` runs on every PE. The job ends when it has returned on all of them and no message is under
    way, so calls that were sent before are run.

    Args:
        main: a function of one argument, the team of all PEs; as a rule an ``async def``.

    Returns:
        What main returned on this PE.

    Raises:
        SystemExit, KeyboardInterrupt, weft.Error: as weft.run.
    """
    if not callable(main):
        raise _core.Error(
            f"weft.pgas.run takes the function main, not a {type(main).__name__}; write weft.pgas.run(main)"
        )

    async def whole() -> Any:
        result = main(world())
        if inspect.iscoroutine(result):
            result = await result
        await world().barrier()
        if world().rank == 0:
            await _core.quiescence()
            _core.exit(0)
        return result

    return run_with(_core._run_on_all, whole)


def world() -> Team:
    """The team of all PEs; for functions that other PEs call.

    Raises:
        weft.Error: no job is running.
    """
    return _core._world()
