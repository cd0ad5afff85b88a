"""`charm.pool` over weft.Pool."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from weft import _core
from weft._pool.members import DROPPED
from weft._pool.pool import Pool as WeftPool
from weft.charm4py._futures import Future, as_future
from weft.charm4py._threads import blocks, run


async def _call_and_wait(function: Callable[..., Any], *args: Any) -> Any:
    return await run(function, *args) if blocks(function) else function(*args)


class Pool:
    """Runs functions on the PEs. Each PE gives out the tasks that it makes itself.

    The functions travel by name. One that blocks is decorated with @coro.
    """

    def __init__(self) -> None:
        self._pools: dict[int, WeftPool] = {}

    def _pool(self, ncores: int) -> WeftPool:
        """With several PEs, PE 0 is left out, as charm4py does."""
        pes = _core.num_pes()
        workers = list(range(1, pes)) if pes > 1 else [0]
        if 0 < ncores < len(workers):
            workers = workers[:ncores]
        made = self._pools.get(len(workers))
        if made is None:
            made = self._pools[len(workers)] = WeftPool(workers)
        return made

    def Task(
        self,
        func: Callable[..., Any],
        args: Iterable[Any],
        ret: bool = False,
        awaitable: bool = False,
    ) -> Future | None:
        """Runs ``func(*args)`` on some PE.

        Returns:
            with `ret` a future of the result, with `awaitable` one without a value; else None.
        """
        if ret:
            return self._submit(func, *args)
        future = self._pool(-1)._submit(DROPPED, func, tuple(args), {})
        return as_future(future) if awaitable else None

    def _submit(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
        """Runs ``func(*args, **kwargs)`` on some PE."""
        return as_future(self._pool(-1).submit(func, *args, **kwargs))

    def map(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int = 1, ncores: int = -1
    ) -> list[Any]:
        """The results of ``func(item)``, in order. Blocks."""
        result: list[Any] = self._map(func, iterable, chunksize, ncores).get()
        return result

    def map_async(
        self,
        func: Callable[[Any], Any] | None,
        iterable: Iterable[Any],
        chunksize: int = 1,
        ncores: int = -1,
        multi_future: bool = False,
    ) -> Any:
        """As `map`, as a future; with `multi_future` a list with a future for each item.

        The items are copied: the caller may change them at once.
        """
        if not multi_future:
            return self._map(func, copy.deepcopy(list(iterable)), chunksize, ncores)
        pool = self._pool(ncores)
        futures = [pool.submit(*task) for task in _tasks(func, iterable)]
        for future in futures:
            future.then(_observed)  # programs need not look at all of them
        return [as_future(future) for future in futures]

    def submit(self, iterable: Iterable[Any], chunksize: int = 1, ncores: int = -1) -> Any:
        """As `map`, for pairs of a function and its argument."""
        return self._map(None, iterable, chunksize, ncores).get()

    def submit_async(
        self, iterable: Iterable[Any], chunksize: int = 1, ncores: int = -1, multi_future: bool = False
    ) -> Any:
        """As `map_async`, for pairs of a function and its argument."""
        return self.map_async(None, iterable, chunksize, ncores, multi_future)

    def _map(self, func: Any, iterable: Iterable[Any], chunksize: int, ncores: int) -> Future:
        pool = self._pool(ncores)
        if func is not None:
            return as_future(pool.map(func, list(iterable), chunksize=chunksize))
        return as_future(pool.starmap(_call_and_wait, _tasks(func, iterable), chunksize=chunksize))


def _observed(future: Any) -> None:
    """A failure of a future that has a callback does not end the job."""


def _tasks(func: Any, iterable: Iterable[Any]) -> list[tuple[Any, Any]]:
    return list(iterable) if func is None else [(func, item) for item in iterable]
