"""Greenlets of methods that block: when they end, and what idle ones keep. Without a job."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

pytest.importorskip("greenlet")

from weft.charm4py import _threads


class Pause:
    """An awaitable that suspends its coroutine once."""

    def __await__(self) -> Iterator[None]:
        yield


class Kept:
    """A value to which weak references exist."""


@pytest.fixture(autouse=True)
def no_idle_threads(monkeypatch):
    monkeypatch.setattr(_threads._idle, "threads", [])


def finish(coroutine):
    """The result of a coroutine that suspends at most once."""
    try:
        coroutine.send(None)
        coroutine.send(None)
    except StopIteration as over:
        return over.value
    raise AssertionError("the coroutine has suspended twice")


def num_threads() -> int:
    gc.collect()
    return sum(type(one) is _threads.EntryThread for one in gc.get_objects())


def test_finally_of_an_abandoned_method_runs():
    met = []

    def method():
        try:
            _threads.wait(Pause())
        finally:
            met.append("finally")

    coroutine = _threads.run(method)
    coroutine.send(None)
    assert met == []
    coroutine.close()
    assert met == ["finally"]


def test_threads_above_the_limit_end(monkeypatch):
    monkeypatch.setattr(_threads, "_MAX_IDLE", 2)
    before = num_threads()
    coroutines = [_threads.run(_threads.wait, Pause()) for _ in range(5)]
    for coroutine in coroutines:
        coroutine.send(None)
    assert num_threads() == before + 5
    for coroutine in coroutines:
        with pytest.raises(StopIteration):
            coroutine.send(None)
    assert num_threads() == before + 2


@pytest.mark.parametrize("fails", [False, True])
def test_idle_threads_keep_nothing_of_a_method(fails):
    def method(argument):
        _threads.wait(Pause())
        if fails:
            raise ValueError(argument)
        return argument

    argument = Kept()
    reference = weakref.ref(argument)
    coroutine = _threads.run(method, argument)
    if fails:
        with pytest.raises(ValueError) as raised:
            finish(coroutine)
        del raised
    else:
        finish(coroutine)
    del argument, coroutine
    gc.collect()
    assert len(_threads._idle.threads) == 1
    assert _threads._idle.threads[0].gr_context is None
    assert reference() is None


def test_a_thread_is_used_again_after_an_exception():
    def fail():
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        finish(_threads.run(fail))
    [thread] = _threads._idle.threads
    assert finish(_threads.run(lambda: _threads.wait(Pause()) or "second")) == "second"
    assert _threads._idle.threads == [thread]


def test_a_job_on_another_thread_of_the_process_takes_none_of_the_first():
    def run_job():
        results.append(finish(_threads.run(lambda: _threads.wait(Pause()) or "done")))

    results: list[str] = []
    run_job()
    other = threading.Thread(target=run_job)
    other.start()
    other.join()
    assert results == ["done", "done"]
