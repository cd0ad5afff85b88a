"""Waits that end early release their timers, and dropped sleeps too; checks itself."""

import gc
import weakref

import weft
from weft import _core
from weft._await.waiting import _Wait


class Worker(weft.Chare):
    def work(self):
        return 1

    async def fail(self):
        raise ValueError


def is_waiting():
    """Whether a timer is pending on this PE."""
    return _core._sleeps_pending() > 0


async def main():
    worker = weft.Singleton(Worker, weft.num_pes() - 1)
    assert not is_waiting()
    for options in ({}, {"first": True}):
        waited = await weft.wait([worker.work.call()], timeout=3600, **options)
        assert len(waited[0]) == 1 and not is_waiting()
    never = weft.Future()
    await weft.wait([never, worker.work.call()], timeout=3600, first=True)
    assert not is_waiting()
    async for call in weft.as_completed([worker.work.call() for _ in range(3)], timeout=3600):
        assert await call == 1
    assert not is_waiting()
    async for call in weft.as_completed([never, worker.work.call()], timeout=3600):
        assert await call == 1
        break
    del call
    gc.collect()
    assert not is_waiting()
    for wrong in ([never, never], [never, 3]):
        try:
            await weft.wait(wrong, timeout=3600)
        except weft.Error:
            assert not is_waiting()
        else:
            raise AssertionError("it was not refused")
    waits = weakref.WeakSet(one for one in gc.get_objects() if isinstance(one, _Wait))
    assert not waits, list(waits)
    # Its time comes.
    assert await weft.wait([never], timeout=0.001) == ([], [never])
    assert not is_waiting()

    weft.sleep(3600)
    assert not is_waiting(), "nothing can see the sleep any more"
    held = weft.sleep(3600)
    assert is_waiting() and not held.done()
    del held
    assert not is_waiting()
    called = weft.Future()
    weft.sleep(0).then(lambda _: called.set())  # the callback keeps it
    await called
    assert await weft.sleep(0) is None and not is_waiting()
    weft.sleep(3600).then(print)  # the job ends before
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
