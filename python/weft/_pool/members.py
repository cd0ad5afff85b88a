"""The two kinds of chares of a pool: members run tasks, and the home says which member is free.

A caller asks the home for a slot of a member, sends that member a chunk of tasks, and gets the results from
it; arguments and results do not pass through the home. Two rules keep nested use from waiting for ever:

- A member starts a chunk as soon as its PE is free. It never waits for another chunk to end.
- A chunk gives its slot back when it ends, or when one of its tasks waits for the first time.
"""

from __future__ import annotations

import contextvars
import gc
import itertools
import reprlib
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, ClassVar

from weft import _core
from weft._support.remote_errors import original_of

#: How a task takes its item: f(item), f(*item), f(*item[0], **item[1]), and the last one without a result.
ONE_ARGUMENT, ARGUMENTS, KEYWORDS, DROPPED = range(4)

#: A function with this attribute runs as ``await attribute(waits, function, args, kwargs)``.
#: The attribute makes a context for it, and calls waits() each time that the task begins to wait.
TASK_RUNNER = "__weft_task_runner__"

#: Whether a task of a pool runs.
in_task: contextvars.ContextVar[bool] = contextvars.ContextVar("in_task", default=False)

#: What asks for a slot: whether its chunk is short, and what is called with the token and the PE.
Request = tuple[bool, Callable[[int, int], None]]

#: So many slots in a row, per PE of a pool, go to what its tasks ask for while others wait.
NESTED_IN_A_ROW = 2

#: What is told of an argument when its task fails.
_texts = reprlib.Repr()
_texts.maxstring = _texts.maxother = 80


def closed_error() -> _core.Error:
    error = _core.Error("this pool has been closed; make a new weft.Pool()")
    error.code = "closed"
    return error


class Slots:
    """Which members may be given a chunk: state of the home, used by callers on its PE without a message.

    A member has one slot for the chunk that it runs, and one in reserve, which covers the time until the next
    chunk arrives. The reserve is used if chunks are short: a chunk there cannot move to a member that is
    idle. It is always used if the home's own PE runs tasks, because while that runs one, it gives no slots.
    """

    #: By number, on the home's PE, until the pool is closed.
    known: ClassVar[dict[int, Slots]] = {}
    _numbers: ClassVar[itertools.count[int]] = itertools.count()

    def __init__(self, pes: Sequence[int], home_pe: int) -> None:
        self.number = next(Slots._numbers)
        Slots.known[self.number] = self
        self._home_pe = home_pe
        self._home_is_one_of_many = len(pes) > 1 and home_pe in pes
        # The members without a chunk, and those with one, in the order in which they are to be used.
        self._idle: dict[int, None] = dict.fromkeys(pe for pe in pes if pe != home_pe or len(pes) == 1)
        self._with_reserve: dict[int, None] = {}
        self._is_home_idle = self._home_is_one_of_many
        self._held: dict[int, int] = {}  # the member, by token
        self._tokens = itertools.count()
        # See take() for the order.
        self._nested: deque[Request] = deque()
        self._others: deque[Request] = deque()
        self._num_nested_in_a_row = 0
        self._most_nested_in_a_row = NESTED_IN_A_ROW * len(pes)
        self._is_serving = False
        self._num_jobs = 0
        self._is_closed = False
        self._unused: list[_core.Future[None]] = []

    def begin_job(self) -> None:
        """Called once for each job; the pool is not closed before its end_job()."""
        if self._is_closed:
            raise closed_error()
        self._num_jobs += 1

    def end_job(self) -> None:
        self._num_jobs -= 1
        if self._num_jobs == 0:
            for unused in self._unused:
                unused.set()
            self._unused.clear()

    async def close(self) -> None:
        """Waits until there is no job, and admits none from then on."""
        while self._num_jobs > 0:
            unused: _core.Future[None] = _core.Future()
            self._unused.append(unused)
            await unused
        self._is_closed = True
        Slots.known.pop(self.number, None)

    def take(self, is_short: bool, is_nested: bool, granted: Callable[[int, int], None]) -> None:
        """Calls granted(token, pe) when a member can be given a chunk.

        First come, first served. But what a task asks for comes before the others, the newest first: a tree
        of tasks is then worked off in depth, and few of them wait at a time. After NESTED_IN_A_ROW of those
        per PE comes one of the others, which do not wait for the end of the tree.
        """
        if is_nested:
            self._nested.appendleft((is_short, granted))
        else:
            self._others.append((is_short, granted))
        self._serve()

    def give(self, token: int) -> None:
        """The chunk of that token holds its slot no more. May be said twice."""
        pe = self._held.pop(token, None)
        if pe is None:
            return
        if pe == self._home_pe and self._home_is_one_of_many:
            # Messages that the others have sent meanwhile are handled first: another task at once would keep
            # them waiting.
            has_run: _core.Future[None] = _core.Future()
            has_run.then(lambda _: self._free_home())
            has_run.set()
            return
        if pe in self._with_reserve:
            del self._with_reserve[pe]
            self._idle[pe] = None
        else:
            self._with_reserve[pe] = None
        self._serve()

    async def _free_home(self) -> None:
        await _core.yield_now()
        self._is_home_idle = True
        self._serve()

    def _serve(self) -> None:
        if self._is_serving:  # by a caller further up the stack: `granted` asks for more
            return
        self._is_serving = True
        try:
            while waiting := self._next_waiting():
                pe = self._take_free(waiting[0][0])
                if pe is None:
                    return
                token = next(self._tokens)
                self._held[token] = pe
                self._num_nested_in_a_row = self._num_nested_in_a_row + 1 if waiting is self._nested else 0
                _, granted = waiting.popleft()
                granted(token, pe)
        finally:
            self._is_serving = False

    def _next_waiting(self) -> deque[Request]:
        """Whose first is the next; empty if nobody waits."""
        if self._others and self._num_nested_in_a_row >= self._most_nested_in_a_row:
            return self._others
        return self._nested or self._others

    def _take_free(self, is_short: bool) -> int | None:
        """The home's PE after the others: it runs nothing before it has sent them their chunks."""
        if self._idle:
            pe = next(iter(self._idle))
            del self._idle[pe]
            self._with_reserve[pe] = None
            return pe
        if self._is_home_idle:
            self._is_home_idle = False
            return self._home_pe
        if self._with_reserve and (is_short or self._home_is_one_of_many):
            pe = next(iter(self._with_reserve))
            del self._with_reserve[pe]
            return pe
        return None


class Home(_core.Chare):
    """The slots of all pools of a PE, for callers on other PEs. A pool is named by its number.

    It is there as long as the job, so that copies of a pool that has been closed are told so; a closed pool
    leaves nothing behind.
    """

    def begin_job(self, number: int) -> None:
        _slots_of(number).begin_job()

    def end_job(self, number: int) -> None:
        _slots_of(number).end_job()

    async def take(self, number: int, is_short: bool, is_nested: bool) -> tuple[int, int]:
        taken: _core.Future[tuple[int, int]] = _core.Future()
        _slots_of(number).take(is_short, is_nested, lambda token, pe: _core._hand_over(taken, (token, pe)))
        return await taken

    def give(self, number: int, token: int) -> None:
        slots = Slots.known.get(number)
        if slots is not None:  # else all chunks have ended
            slots.give(token)


def _slots_of(number: int) -> Slots:
    slots = Slots.known.get(number)
    if slots is None:
        raise closed_error()
    return slots


_home: _core.ElementProxy | None = None


def home_of_this_pe() -> _core.ElementProxy:
    """Makes it with the first pool that is made on this PE."""
    global _home
    if _home is None:
        _home = _core.Singleton(Home, _core.my_pe())
    return _home


def end_of_job() -> None:
    """Called when a job has ended: the next one in this process has chares of its own."""
    global _home
    _home = None
    Slots.known.clear()
    # Tasks that wait for ever are in cycles with their callbacks, and their futures keep the job's runtime.
    gc.collect()


class Link:
    """The way from this PE to the home of a pool."""

    def __init__(self, home: _core.ElementProxy, home_pe: int, number: int) -> None:
        self._home = home
        self._number = number
        self._slots = Slots.known.get(number) if _core.my_pe() == home_pe else None

    @property
    def is_local(self) -> bool:
        return self._slots is not None

    def begin_job(self, begun: Callable[[], None], refused: Callable[[Exception], None]) -> None:
        """Raises closed_error() if that is known here; otherwise calls one of the two, now or later."""
        if self._slots is not None:
            self._slots.begin_job()
            begun()
            return

        def answered(call: _core.Future[None]) -> None:
            try:
                call.result()
            except _core.Error as error:
                refused(error)
            else:
                begun()

        self._home.begin_job.call(self._number).then(answered)

    def end_job(self) -> None:
        if self._slots is not None:
            self._slots.end_job()
        else:
            self._home.end_job(self._number)

    def take(self, is_short: bool, is_nested: bool, granted: Callable[[int, int], None]) -> None:
        if self._slots is not None:
            self._slots.take(is_short, is_nested, granted)
        else:
            self._home.take.call(self._number, is_short, is_nested).then(lambda call: granted(*call.result()))

    def give(self, token: int) -> None:
        if self._slots is not None:
            self._slots.give(token)
        else:
            self._home.give(self._number, token)


#: A task's failure: its place in the chunk, the exception's type_name, message, traceback_text and original,
#: the argument.
Failure = tuple[int, str, str, str, bytes, str]


class Member(_core.Chare):
    """Runs chunks of tasks on its PE."""

    def __init__(self, home: _core.ElementProxy, home_pe: int, number: int) -> None:
        self._place = (home, home_pe, number)

    async def run(
        self, token: int, gives: bool, function: object, style: int, chunk: Sequence[Any]
    ) -> tuple[list[Any], Failure | None, float]:
        """Runs the tasks of a chunk one after the other, up to the first that fails.

        Args:
            token: of the slot that the chunk holds.
            gives: whether the slot is given back here in the end, or else by the caller when it has the
                results.
            function: what portable() made of the function.
            style: how it takes an item.
            chunk: an item for each task.

        Returns:
            The results, the failure if there is one, and how many seconds the chunk took.
        """
        held = [token]
        in_task.set(True)

        def give() -> None:
            if held:
                Link(*self._place).give(held.pop())

        results: list[Any] = []
        begin = time.perf_counter()
        try:
            call = _function(function)
            runner = getattr(call, TASK_RUNNER, None)
            for item in chunk:
                if runner is not None:
                    result = await runner(give, call, *_arguments(style, item))
                else:
                    if style == ONE_ARGUMENT:
                        result = call(item)
                    elif style == ARGUMENTS:
                        result = call(*item)
                    else:
                        result = call(*item[0], **item[1])
                    if type(result) is types.CoroutineType:
                        result = await _watched(result, give)
                results.append(None if style == DROPPED else result)
            failure = None
        except Exception as error:
            failure = (len(results), *_travelling(error), _texts.repr(chunk[len(results)]))
        finally:
            if gives:
                give()
        return _core._separate(results), failure, time.perf_counter() - begin


def _arguments(style: int, item: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    if style == ONE_ARGUMENT:
        return (item,), {}
    return (item, {}) if style == ARGUMENTS else item


@types.coroutine
def _watched(coroutine: Coroutine[Any, Any, Any], waits: Callable[[], None]) -> Generator[Any, None, Any]:
    """Awaits the coroutine in a context of its own, and calls waits() each time that it waits."""
    context = contextvars.copy_context()
    error: BaseException | None = None
    while True:
        try:
            awaited = (
                context.run(coroutine.send, None) if error is None else context.run(coroutine.throw, error)
            )
        except StopIteration as end:
            return end.value
        waits()
        error = None
        try:
            yield awaited
        except Exception as raised:  # the scheduler cannot wait for it
            error = raised


def _travelling(error: Exception) -> tuple[str, str, str, bytes]:
    """Its type_name, message and traceback_text, which begins where the task does; and the original."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    remote = as_remote(error.with_traceback(traceback))
    return remote.type_name, remote.message, remote.traceback_text, original_of(remote)


def as_remote(error: Exception) -> _core.RemoteError:
    """As it would arrive from an entry method that raised it."""
    carrier: _core.Future[None] = _core.Future()
    carrier.set_error(error)
    try:
        carrier.result()
    except _core.RemoteError as remote:
        return remote.with_traceback(None)
    raise AssertionError("a future with an error has no value")


def portable(function: Callable[..., Any]) -> object:
    """What a member gets of a function: its importable name, or itself if it is another object with a value.

    Raises:
        weft.Error: other PEs cannot find the function.
    """
    if not callable(function):
        raise _core.Error(f"a pool runs functions, not a {type(function).__name__}")
    is_plain = isinstance(function, (types.FunctionType, type)) or (
        isinstance(function, types.BuiltinFunctionType)
        and (function.__self__ is None or isinstance(function.__self__, types.ModuleType))
    )
    if is_plain:
        return _core._importable_key(function)
    try:
        _core._encode(function)
    except Exception as error:
        raise _core.Error(
            f"the function {_texts.repr(function)} cannot be sent to other PEs: {error}; use a function at "
            "the top level of a module, and give it the rest as arguments"
        ) from error
    return function


def _function(function: object) -> Callable[..., Any]:
    found: object = _core._imported(function) if isinstance(function, str) else function
    assert callable(found)
    return found
