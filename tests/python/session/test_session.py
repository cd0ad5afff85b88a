"""weft.session: PEs that stay."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Iterator

import pytest

import weft


class Store(weft.Chare):
    def __init__(self):
        self.values = {}

    def put(self, key, value):
        self.values[key] = value
        return weft.my_pe()

    def get(self, key):
        return self.values[key]

    def process(self):
        return os.getpid()

    def fail(self):
        raise KeyError("nothing awaits this")


@pytest.fixture
def session() -> Iterator[weft.Session]:
    with weft.session(pes=2) as opened:
        yield opened


def test_chares_of_one_call_are_used_in_the_next(session) -> None:
    stores = session.run(lambda: weft.Array(Store, 4))

    async def put():
        return [await stores[i].put.call("key", i) for i in range(4)]

    async def get():
        return await stores.get.call("key")

    assert session.run(put) == [0, 0, 1, 1]
    assert session.run(lambda: stores.get.call("key")) == [0, 1, 2, 3]
    assert session.run(get) == [0, 1, 2, 3]
    # weft.run uses the session.
    assert weft.run(get) == weft.run(get, pes=2) == [0, 1, 2, 3]
    with pytest.raises(weft.Error, match="pes=3: the open session has 2 PEs"):
        weft.run(get, pes=3)


def test_a_class_that_is_defined_again_is_another_one(session) -> None:
    def define(text):
        class Again(weft.Chare):
            def text(self):
                return text

        return session.run(lambda: weft.Array(Again, 2))

    old, new = define("old"), define("new")

    async def both():
        return await old.text.call(), await new.text.call()

    assert session.run(both) == (["old", "old"], ["new", "new"])


def test_what_a_function_raises_is_raised_and_the_session_stays(session) -> None:
    error = ValueError("boom")

    async def main():
        raise error

    def function():
        raise error

    for raising in (main, function):
        with pytest.raises(ValueError, match="boom") as caught:
            session.run(raising)
        assert caught.value is error
    assert session.run(weft.num_pes) == 2


def test_functions_run_side_by_side_and_are_awaited_in_asyncio(session) -> None:
    def make():
        return weft.Array(Store, 2), weft.Future()

    stores, both_there = session.run(make)

    async def first():
        return await both_there

    async def second():
        both_there.set(await stores.put.call("key", 1))
        return "second"

    async def main():
        return await asyncio.gather(session.submit(first), session.submit(second))

    assert asyncio.run(main()) == [[0, 1], "second"]


def test_it_is_an_asynchronous_context_manager() -> None:
    async def main():
        async with weft.session(pes=2) as opened:
            return await opened.submit(weft.num_pes)

    assert asyncio.run(main()) == 2


def test_any_thread_may_use_it_except_its_own(session) -> None:
    results = []
    thread = threading.Thread(target=lambda: results.append(session.run(weft.my_pe)))
    thread.start()
    thread.join()
    assert results == [0]
    for use in (lambda: session.run(weft.my_pe), session.close):
        with pytest.raises(weft.Error, match="would wait for its own PE"):
            session.run(use)


def test_a_process_has_one_session_at_a_time(session) -> None:
    with pytest.raises(weft.Error, match="has an open session of 2 PEs"):
        weft.session(pes=2)
    session.close()
    session.close()
    assert session.closed
    with pytest.raises(weft.Error, match="the session was closed; make another one"):
        session.run(weft.my_pe)
    with weft.session(pes=3) as other:
        assert other.run(weft.num_pes) == other.pes == 3


def test_processes_end_with_the_session() -> None:
    with weft.session(pes=2) as opened:

        async def processes():
            return await weft.Group(Store).process.call()

        own, other = opened.run(processes)
        assert own == os.getpid()
        os.kill(other, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


def test_an_error_that_nothing_awaits_ends_the_session(session) -> None:
    async def main():
        weft.Array(Store, 2)[1].fail()
        await weft.Future()

    for _ in range(2):
        with pytest.raises(weft.Error, match=r"left Store\[1\].fail on PE 1(.|\n)*make another one"):
            session.run(main)
    assert session.closed
    assert weft.run(lambda: weft.exit()) is None


def fail_unseen(session: weft.Session) -> None:
    """An error ends the job, and nothing raises it."""
    session.submit(lambda: weft.Array(Store, 2)[1].fail())
    session._thread.join()


def test_close_raises_what_nothing_else_has_raised() -> None:
    words = r"the session has ended: (.|\n)*left Store\[1\].fail on PE 1"
    with pytest.raises(weft.Error, match=words), weft.session(pes=2) as opened:
        fail_unseen(opened)
    opened.close()  # once

    async def main():
        async with weft.session(pes=2) as opened:
            fail_unseen(opened)

    with pytest.raises(weft.Error, match=words):
        asyncio.run(main())


def test_a_failure_beside_another_exception_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="another"), weft.session(pes=1) as opened:
        fail_unseen_alone(opened)
        raise ValueError("another")
    assert "weft: the session has ended: weft.exit(3) was called" in capfd.readouterr().err


def fail_unseen_alone(session: weft.Session) -> None:
    session.submit(lambda: weft.exit(3))
    session._thread.join()


def test_close_does_not_raise_what_a_task_has_raised() -> None:
    with weft.session(pes=2) as opened:
        task = opened.submit(weft.Future)  # stays open until the job ends
        fail_unseen(opened)
        with pytest.raises(weft.Error, match="nothing awaits this"):
            task.result()


def test_an_exception_of_a_task_that_nothing_reads_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    async def main():
        raise ValueError("unread")

    async def wait_for(task):
        await task

    with weft.session(pes=1) as opened:
        dropped, read, awaited = (opened.submit(main) for _ in range(3))
        assert str(read.exception()) == "unread"
        with pytest.raises(ValueError, match="unread"):
            asyncio.run(wait_for(awaited))
        opened.run(weft.num_pes)
        assert dropped.done()
        del dropped, read, awaited
        gc.collect()
    error = capfd.readouterr().err
    assert error.count("nothing has read the exception") == error.count("ValueError: unread") == 1, error


def test_a_failure_while_it_closes_reaches_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with weft.session(pes=2) as opened:
        task = opened.submit(weft.Future)  # stays open until the job ends
        # In place of the end of main.
        monkeypatch.setattr(opened, "_end_main", lambda: weft.Array(Store, 2)[1].fail())
        told: list[BaseException | None] = []
        waiting = threading.Thread(target=lambda: told.append(task.exception()))
        waiting.start()
        with contextlib.suppress(weft.Error):  # it raises the failure if it ends before the other thread
            opened.close()
        waiting.join()
    assert "nothing awaits this" in str(told[0])
    with pytest.raises(weft.Error, match="nothing awaits this"):
        opened.run(weft.my_pe)


def test_a_session_of_one_pe_starts_no_process() -> None:
    with weft.session(pes=1) as opened:
        assert opened.run(weft.num_pes) == 1


def test_a_launched_process_makes_no_session(run_program) -> None:
    ended = run_program("import weft\nweft.session(pes=2)", launched=2)
    assert ended.returncode == 1
    assert "this process is a PE of a launch: use weft.run(main)" in ended.stderr
