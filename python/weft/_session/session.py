"""weft.session: PEs that stay between the cells of a notebook, or between the tests of a module."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import inspect
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from weft import _core
from weft._session.run_on import check_pes, launched_pes, run_with_others

_T = TypeVar("_T")

# A function of the session that computes for ever must not keep the interpreter from ending.
_LIMIT_AT_EXIT_S = 10


class SessionTask(concurrent.futures.Future[_T], Generic[_T]):
    """What a function returns that runs in a session: ``await task`` in asyncio, ``task.result()`` elsewhere.

    It cannot be cancelled: what waits for it may give up, and the function runs on.
    """

    _was_read = False
    # What the function raised, until something reads it.
    _unread: BaseException | None = None

    def _note_read(self) -> None:
        self._was_read = self.done()
        if self._was_read:
            self._unread = None

    def __del__(self) -> None:
        if self._unread is not None:
            print("weft: nothing has read the exception of a function of a session", file=sys.stderr)
            traceback.print_exception(self._unread)

    def result(self, timeout: float | None = None) -> _T:
        """As that of concurrent.futures.Future."""
        try:
            return super().result(timeout)
        finally:
            self._note_read()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As that of concurrent.futures.Future."""
        try:
            return super().exception(timeout)
        finally:
            self._note_read()

    def cancel(self) -> bool:
        """Returns False."""
        return False

    def __await__(self) -> Generator[Any, None, _T]:
        return asyncio.wrap_future(self).__await__()


class Session:
    """PEs that are kept, see `session`.

    One job, as long as the session is open: chares, proxies and futures of one call are used in the next.
    Its PE 0 is a thread of this process, on which all functions of the session run, so that
    chares of PE 0 run while the caller does something else.

    Any thread may use it, except from inside of its functions and chares. After an exception in a chare that
    nothing awaits the job has ended, and so has the session: its methods raise that error, `close` too if
    nothing has raised it before. At the end of a ``with`` block that another exception leaves it is printed.
    """

    def __init__(self, pes: int) -> None:
        self._pes = pes
        self._is_running = concurrent.futures.Future[None]()
        self._close_asked: _core.Future[None] | None = None
        self._lock = threading.Lock()
        self._tasks: set[SessionTask[Any]] = set()
        self._ended: BaseException | None = None
        # What ended the job early, until a method or a task has raised it.
        self._failure: _core.Error | None = None
        self._abandoned: set[SessionTask[Any]] = set()
        # A daemon: at the end of the interpreter `close` is called after other threads have been waited for.
        self._thread = threading.Thread(target=self._run_job, name="weft-pe-0", daemon=True)
        self._thread.start()

    @property
    def pes(self) -> int:
        """How many PEs it has."""
        return self._pes

    @property
    def closed(self) -> bool:
        """Whether its job has ended: it was closed, or an error ended it."""
        return self._ended is not None

    @overload
    def run(self, main: Callable[[], Awaitable[_T]], *, pes: int | None = None) -> _T: ...
    @overload
    def run(self, main: Callable[[], _T], *, pes: int | None = None) -> _T: ...
    def run(self, main: Callable[[], Any], *, pes: int | None = None) -> Any:
        """Runs ``main()`` on PE 0 and returns what it returns. Blocks.

        If main returns an awaitable, as a coroutine function and ``lambda: proxy.method.call()`` do, that is
        awaited on PE 0. What comes out is handed over itself: proxies may be kept for later calls of `run`.
        Ctrl-C raises KeyboardInterrupt here, and main runs on.

        Args:
            main: a function without arguments. `weft.run` calls this function while a session is open.
            pes: None, or the number of PEs of the session.

        Raises:
            Exception: what main raised, itself.
            weft.Error: the session has ended, or has another number of PEs.
        """
        if pes not in (None, self._pes):
            raise _core.Error(f"pes={pes}: the open session has {self._pes} PEs; close it first")
        task = self.submit(main)
        try:
            return task.result()
        finally:
            del task  # its exception refers to this frame

    @overload
    def submit(self, main: Callable[[], Awaitable[_T]]) -> SessionTask[_T]: ...
    @overload
    def submit(self, main: Callable[[], _T]) -> SessionTask[_T]: ...
    def submit(self, main: Callable[[], Any]) -> SessionTask[Any]:
        """As `run`, without waiting: returns a task, for ``await`` in a notebook or ``result()``.

        Raises:
            weft.Error: the session has ended, or this is a thread of its own.
        """
        if not callable(main):
            raise _core.Error(f"a session runs a function, not a {type(main).__name__}; write run(main)")
        self._refuse_own_thread()
        task = SessionTask[Any]()
        with self._lock:
            if self._ended is not None:
                self._failure = None
                raise self._ended_error()
            self._tasks.add(task)
            _core.post_from_any_thread(lambda: self._start(main, task))
        return task

    def close(self) -> None:
        """Ends the job and its processes. Blocks until they have ended. May be called again.

        Functions that have not returned are abandoned: their tasks raise weft.Error. One that computes and
        never waits is not interrupted.

        Raises:
            weft.Error: an error has ended the job, and nothing has raised it before.
        """
        self._close(None)
        if (failure := self._take_failure()) is not None:
            raise failure

    def _close(self, limit_s: float | None) -> None:
        self._refuse_own_thread()
        with self._lock:
            if self._ended is None:
                self._ended = _core.Error("the session was closed")
                # A job that has just ended by itself takes no calls any more.
                with contextlib.suppress(_core.Error):
                    _core.post_from_any_thread(self._end_main)
        self._thread.join(limit_s)

    def _close_and_print(self, limit_s: float | None = None) -> None:
        self._close(limit_s)
        if (failure := self._take_failure()) is not None:
            print(f"weft: {failure}", file=sys.stderr)

    def _take_failure(self) -> _core.Error | None:
        with self._lock:
            failure, self._failure = self._failure, None
        return None if any(task._was_read for task in self._abandoned) else failure

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close_and_print()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close if error is None else self._close_and_print)

    def __repr__(self) -> str:
        return f"<weft.Session of {self._pes} PEs{', closed' if self.closed else ''}>"

    def _refuse_own_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise _core.Error(
                "a function or chare of the session used the session itself, and would wait for its own PE; "
                "await coroutines and proxies directly"
            )

    def _ended_error(self) -> _core.Error:
        # A new one each time: an exception that is raised twice collects the tracebacks of both.
        return _core.Error(f"{self._ended}; make another one with weft.session(pes={self._pes})")

    # --- on PE 0's thread

    def _run_job(self) -> None:
        failure: BaseException | None = None
        try:
            if self._pes == 1:
                from weft._job.run import run_with

                run_with(_core._run, self._main)
            else:
                run_with_others(self._pes, _core._run, self._main)
        except BaseException as error:
            failure = error
        if not self._is_running.done():
            self._is_running.set_exception(failure or _core.Error("the job ended before it began"))
        reason: object = failure
        if failure is None or isinstance(failure, SystemExit):
            reason = f"weft.exit({'' if failure is None else failure}) was called"
        ended = _core.Error(f"the session has ended: {reason}")
        with self._lock:
            if failure is not None:
                self._failure = ended
            # A failure while `close` waits is told by the tasks that it ends: "was closed" would hide it.
            if failure is not None or self._ended is None:
                self._ended = ended
            self._abandoned, self._tasks = self._tasks, set()
        for task in self._abandoned:
            task.set_exception(self._ended_error())

    async def _main(self) -> None:
        self._close_asked = _core.Future()
        with self._lock:
            if self._ended is not None:  # it was closed while it started
                return
        self._is_running.set_result(None)
        await self._close_asked

    def _end_main(self) -> None:
        if self._close_asked is not None:
            self._close_asked.set(None)

    def _start(self, main: Callable[[], Any], task: SessionTask[Any]) -> None:
        try:
            made = main()
        except BaseException as error:
            self._settle(task, error=error)
            return
        if inspect.isawaitable(made):
            _core._spawn(self._finish(made, task), "a function of the session")
        else:
            self._settle(task, made)

    async def _finish(self, awaitable: Awaitable[Any], task: SessionTask[Any]) -> None:
        try:
            value = await awaitable
        except GeneratorExit:  # the job has ended; `_run_job` says why
            raise
        except BaseException as error:
            self._settle(task, error=error)
        else:
            self._settle(task, value)

    def _settle(self, task: SessionTask[Any], value: Any = None, error: BaseException | None = None) -> None:
        with self._lock:
            if task not in self._tasks:
                return
            self._tasks.discard(task)
        if error is None:
            task.set_result(value)
        else:
            task._unread = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
            task.set_exception(error)


_open: Session | None = None


def open_session() -> Session | None:
    """The session of this process, if one is open and this is not its own thread."""
    if _open is None or _open.closed or threading.current_thread() is _open._thread:
        return None
    return _open


def session(pes: int) -> Session:
    """Starts a job that is kept: in a notebook for its cells, in a program for several functions.

        session = weft.session(pes=4)
        ring = session.run(make_ring)                 # any function; its result is handed over
        print(await session.submit(lambda: ring.work.call()))
        session.close()

    It is a context manager too (``with``, ``async with``). While it is open, weft.run runs its main in
    it. The other PEs are fresh processes of this host, as those of ``weft.run(main, pes=N)``. They end with
    the session, or with this process, in whatever way it ends. A process has one session at a time.

    Blocks until the PEs have joined: about as long as two starts of Python.

    Args:
        pes: the number of PEs, this process included.

    Raises:
        weft.Error: a session is open, a launcher has started this process, or the PEs could not be started.
    """
    global _open
    check_pes(pes)
    if _open is not None and not _open.closed:
        raise _core.Error(f"this process has an open session of {_open.pes} PEs; close it first")
    if launched_pes() is not None:
        raise _core.Error(
            "weft.session starts its PEs itself, and this process is a PE of a launch: use weft.run(main), "
            "which may be called several times, or start the program without a launcher; with "
            "WEFT_BOOTSTRAP=singleton in its environment, a process of a launch starts PEs of its own"
        )
    made = Session(pes)
    try:
        made._is_running.result()
    except BaseException:  # Ctrl-C too
        made._close(None)
        raise
    _open = made
    return made


@atexit.register
def _close_at_exit() -> None:
    if _open is not None:
        # The other PEs end with this process anyway.
        _open._close_and_print(_LIMIT_AT_EXIT_S)
