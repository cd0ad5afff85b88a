"""weft.Pool: functions over the PEs of a job."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any

from weft import _core
from weft._pool.job import Job
from weft._pool.members import (
    ARGUMENTS,
    KEYWORDS,
    ONE_ARGUMENT,
    Link,
    Member,
    Slots,
    closed_error,
    home_of_this_pe,
    portable,
)


class Pool:
    """Runs functions on the PEs of the job: ``await pool.map(function, items)``.

        async with weft.Pool() as pool:
            squares = await pool.map(square, range(1000))
            one = pool.submit(square, 5)
            print(await one)

    Made in main, an entry method or a task, on any PE. A function is sent by its name: it is defined at the
    top level of the script or of a module. Arguments and results are values, as with entry methods. A task
    is run like an entry method: nothing else runs on its PE until it returns, or, if it is an ``async def``,
    awaits.

    A PE gets new tasks when it has done earlier ones, so unequal tasks are spread evenly. PEs are given to
    jobs of the pool in the order of asking. Tasks may use the pool, which they get as an argument; they
    await its results, and their PE runs other tasks meanwhile.

    If tasks raise, the exception of the first of them in order arrives as weft.RemoteError when no task of
    the same map runs any more; tasks that had not been sent to a PE by then are not run. The pool stays
    usable.

    Args:
        pes: the PEs that run tasks, each once; all if None. The PE that makes the pool gives out the work.
            While it runs a task it gives out none, and the others have one chunk of tasks in reserve. Leave
            it out if tasks take long and unequally long: ``weft.Pool(range(1, weft.num_pes()))``.

    Raises:
        weft.Error: no job is running, or `pes` names no PE, a wrong one, or one twice.
    """

    def __init__(self, pes: Iterable[int] | None = None) -> None:
        _core._sleeps_pending()  # raises without a job, and on another thread than the PE's
        chosen = _checked_pes(pes)
        slots = Slots(chosen, _core.my_pe())
        place = (home_of_this_pe(), _core.my_pe(), slots.number)
        self._slots: Slots | None = slots
        self._attach(_core.Group(Member, place), chosen, place)

    def _attach(
        self, members: _core.CollectionProxy, pes: tuple[int, ...], place: tuple[_core.ElementProxy, int, int]
    ) -> None:
        self._group = members
        self._pes = pes
        self._place = place
        self._link = Link(*place)
        self._is_closing = False
        # Control messages and resumed coroutines come before the next chunk.
        self._members = {pe: members[pe].with_priority(1) for pe in pes}

    def __reduce__(self) -> tuple[object, ...]:
        """A copy, on any PE, uses the same members; only the original can close the pool."""
        if self._is_closing:
            raise closed_error()
        return Pool._copy_of, (self._group, self._pes, self._place)

    @classmethod
    def _copy_of(
        cls, members: _core.CollectionProxy, pes: tuple[int, ...], place: tuple[_core.ElementProxy, int, int]
    ) -> Pool:
        pool = cls.__new__(cls)
        pool._slots = None
        pool._attach(members, pes, place)
        return pool

    @property
    def pes(self) -> tuple[int, ...]:
        """The PEs that run tasks."""
        return self._pes

    def map(
        self, function: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None
    ) -> _core.Future[list[Any]]:
        """Calls ``function(item)`` for each item; ``await pool.map(...)`` gives the list of results.

        Does not block. Items are taken from the iterable, on this PE, when their chunk is sent; each PE has
        at most a few chunks at a time, so a generator may be endless in all but name.

        Args:
            function: of one argument, at the top level of a module; a function, an ``async def``, a class,
                or an object that pickle takes, such as a functools.partial of such a function.
            iterable: the items; any number.
            chunksize: how many tasks travel together; None to choose by the time that they take, about 2 ms.
                The tasks of a chunk run one after the other. A task that awaits does so for its chunk.

        Returns:
            A future of the results in the order of the items. It works with weft.gather, weft.wait and
            weft.as_completed. If a task raised, awaiting it raises weft.RemoteError, whose text names the
            task, its argument and PE. If the program drops it without looking at a failure, that ends the
            job.

        Raises:
            weft.Error: other PEs cannot find the function, a wrong chunksize, or the pool is closed.
        """
        return self._collect("map", function, ONE_ARGUMENT, iterable, chunksize)

    def map_async(
        self, function: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None
    ) -> _core.Future[list[Any]]:
        """The same as `map`, under the name that other pools have for a map that is awaited later."""
        return self._collect("map_async", function, ONE_ARGUMENT, iterable, chunksize)

    def starmap(
        self, function: Callable[..., Any], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> _core.Future[list[Any]]:
        """Like `map`, with ``function(*item)``."""
        return self._collect("starmap", function, ARGUMENTS, iterable, chunksize)

    def imap(
        self, function: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None
    ) -> AsyncIterator[Any]:
        """Like `map`, one result after the other: ``async for result in pool.imap(function, items)``.

        Only a few chunks per PE are sent ahead of the loop, so neither items nor results pile up. If the loop
        is left early, tasks that have not been sent are not run.

        Returns:
            An asynchronous iterator over the results in the order of the items. If a task raised, the
            results of the tasks before it come first.

        Raises:
            weft.Error: as for `map`.
        """
        return _Results(self._job("imap", function, ONE_ARGUMENT, iterable, chunksize), is_ordered=True)

    def imap_unordered(
        self, function: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None
    ) -> AsyncIterator[Any]:
        """Like `imap`, with the results in the order in which chunks end. An exception comes last."""
        job = self._job("imap_unordered", function, ONE_ARGUMENT, iterable, chunksize)
        return _Results(job, is_ordered=False)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _core.Future[Any]:
        """Calls ``function(*args, **kwargs)`` once, on the next PE that is free. Does not block.

        Any number of tasks may be submitted; they wait on this PE, with their arguments. For many items use
        `map` or `imap`, which send them in chunks.

        Args:
            function: as for `map`.
            args: values, as for entry methods; device memory and weft.nocopy arrays are sent in place and
                must not change before the future is done.
            kwargs: the same.

        Returns:
            A future of the result, for ``await``, weft.gather, weft.wait and weft.as_completed. Failures are
            as for `map`.

        Raises:
            weft.Error: other PEs cannot find the function, or the pool is closed.
        """
        return self._submit(KEYWORDS, function, args, kwargs)

    def _submit(
        self, style: int, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _core.Future[Any]:
        """As `submit`, for KEYWORDS; for DROPPED the result is None."""
        job = self._job("submit", function, style, [(args, kwargs)], 1)
        future = _settled_by(job, lambda parts: parts[0][0])
        job.start()
        if job.waits_for_slots:
            job.replace_items(_copy_of_arguments)
        return future

    async def close(self) -> None:
        """Waits for all tasks, and those that they start, then ends the pool. Later uses raise weft.Error.

        From the call on nothing new can be started with this object. Tasks that run may use their copies of
        the pool until they end. A second call waits for the same. ``async with weft.Pool() as pool`` closes
        it.

        Raises:
            weft.Error: this is a copy of the pool, such as a task gets; only the object that was made by
                ``weft.Pool()`` closes it.
        """
        if self._slots is None:
            raise _core.Error(
                "this is a copy of a pool; close the pool with the object that weft.Pool() returned"
            )
        _core._sleeps_pending()  # raises on another thread than the PE's
        was_closing, self._is_closing = self._is_closing, True
        await self._slots.close()
        if not was_closing:
            await self._group.destroy()

    async def __aenter__(self) -> Pool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _job(
        self, name: str, function: Callable[..., Any], style: int, items: Iterable[Any], chunksize: int | None
    ) -> Job:
        if self._is_closing:
            raise closed_error()
        _core._sleeps_pending()  # raises on another thread than the PE's
        if chunksize is not None and (not isinstance(chunksize, int) or chunksize < 1):
            raise _core.Error(f"chunksize is a number of tasks from 1, or None, not {chunksize!r}")
        what = f"{name}({getattr(function, '__qualname__', type(function).__name__)})"
        return Job(self._link, self._members, what, portable(function), style, items, chunksize)

    def _collect(
        self, name: str, function: Callable[..., Any], style: int, items: Iterable[Any], chunksize: int | None
    ) -> _core.Future[list[Any]]:
        job = self._job(name, function, style, items, chunksize)
        future = _settled_by(
            job, lambda parts: list(itertools.chain.from_iterable(parts[i] for i in range(len(parts))))
        )
        job.start()
        return future


def _checked_pes(pes: Iterable[int] | None) -> tuple[int, ...]:
    num_pes = _core.num_pes()
    if pes is None:
        return tuple(range(num_pes))
    if isinstance(pes, int):
        raise _core.Error(f"weft.Pool takes the numbers of its PEs: weft.Pool(range({pes}))")
    chosen = tuple(pes)
    if not chosen:
        raise _core.Error("weft.Pool has no PE to run tasks on; name one, or leave out `pes`")
    for pe in chosen:
        if not isinstance(pe, int) or not 0 <= pe < num_pes:
            raise _core.Error(f"weft.Pool on PE {pe!r}: the PEs of this job are 0 to {num_pes - 1}")
    if len(set(chosen)) < len(chosen):
        raise _core.Error(f"weft.Pool on PEs {list(chosen)}: name each once")
    return chosen


def _settled_by(job: Job, value: Callable[[dict[int, list[Any]]], Any]) -> _core.Future[Any]:
    """A future that gets the job's results, or its failure."""
    future = _core._call_future(f"{job.what}, whose result was not awaited")

    def changed() -> None:
        if not job.is_over:
            return
        job.changed = _ignore  # the job keeps the future no longer
        if job.failure is not None:
            future.set_error(job.failure[1])
        else:
            _core._hand_over(future, value(job.parts))  # nothing else has them

    job.changed = changed
    return future


def _ignore() -> None:
    pass


def _copy_of_arguments(item: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """The values as they are now, for tasks that are sent later."""
    args, kwargs = item
    return tuple(map(_value, args)), {name: _value(value) for name, value in kwargs.items()}


def _value(argument: Any) -> Any:
    try:
        return _core._decode(_core._encode(argument))
    except Exception:  # sent in place; or it cannot be sent, which the future tells
        return argument


class _Results:
    """The results of a job as an asynchronous iterator."""

    def __init__(self, job: Job, is_ordered: bool) -> None:
        # The job does not keep this object, which abandons it when the program drops the iterator.
        changed: list[_core.Future[None]] = [_core.Future()]
        self._changed = changed
        self._job = job
        self._is_ordered = is_ordered
        self._next_part = 0
        self._ready: deque[Any] = deque()
        self._has_raised = False
        job.keeps_parts = True

        def wake() -> None:
            if not changed[0].done():
                changed[0].set()

        job.changed = wake
        job.start()

    def __aiter__(self) -> _Results:
        return self

    async def __anext__(self) -> Any:
        while not self._ready:
            part = self._take_part()
            if part is not None:
                self._ready.extend(part)
                self._job.fill()
            elif self._job.is_over:
                if self._job.failure is None or self._has_raised:
                    raise StopAsyncIteration
                self._has_raised = True
                raise self._job.failure[1]
            else:
                await self._changed[0]
                self._changed[0] = _core.Future()
        return self._ready.popleft()

    def _take_part(self) -> list[Any] | None:
        parts, failure = self._job.parts, self._job.failure
        if not self._is_ordered:
            return parts.pop(next(iter(parts))) if parts else None
        if failure is not None and self._next_part > failure[0]:
            return None
        part = parts.pop(self._next_part, None)
        if part is not None:
            self._next_part += 1
        return part

    def __del__(self) -> None:
        job = getattr(self, "_job", None)
        if job is not None and not job.is_over:
            with contextlib.suppress(_core.Error):  # the job of the PEs has ended
                job.abandon()
