"""Calls, futures and coroutines that a program forgets to await. argv[1] says which."""

import sys

import weft

MODE = sys.argv[1]


class Worker(weft.Chare):
    def work(self):
        return 5

    async def work_later(self):
        self.gate = weft.Future()
        await self.gate
        return 6

    def look(self, future):
        assert not future.done()

    def open(self):
        self.gate.set()

    def fail(self):
        raise ValueError("lost")

    async def never(self):
        await weft.Future()

    async def set_later(self, future):
        try:
            text = str(future.done())
        except weft.Error as error:
            text = str(error)
        future.set(text)

    async def fail_later(self):
        for _ in range(100):
            await weft.yield_now()
        self.fail()

    def forget_failure(self):
        self.proxy[0].fail_later.call()

    async def forget(self):
        self.proxy[0].work.call()
        await weft.sleep(0)


async def looked_at(workers):
    future = workers[1].work.call()
    assert repr(future) == str(future) == "<weft.Future of Worker[1].work: pending>", future
    assert (future == 5) is False
    assert await future == 5
    assert repr(future) == "<weft.Future of Worker[1].work: ready>", future
    of_all = workers.work.call()
    assert repr(of_all) == "<weft.Future of Worker.work: pending>"
    await of_all
    failed = workers[1].fail.call()
    while not failed.done():
        await weft.yield_now()
    assert repr(failed) == "<weft.Future of Worker[1].fail: failed with ValueError>", failed
    try:
        await failed
    except ValueError:
        pass
    own = weft.Future()
    assert repr(own) == "<weft.Future: pending>"
    for condition in (bool, lambda future: future or 1, lambda future: not future):
        try:
            condition(own)
            raise AssertionError("a future has a truth value")
        except weft.Error as error:
            assert "neither true nor false: `await` it" in str(error), error
    workers[1].set_later(own)
    text = await own
    other = weft.num_pes() > 1
    assert ("this future belongs to PE 0, and only that PE knows" in text) is other, text
    assert own.done()


async def helper():
    return 1


async def main():
    workers = weft.Array(Worker, 2)
    if MODE == "looked_at":
        await looked_at(workers)
        print("all checked")
    elif MODE == "fail":
        workers[1].fail.call()
    elif MODE == "fail_all":
        workers.fail.call()
    elif MODE == "fail_elsewhere":
        await workers[1].forget_failure.call()
    elif MODE == "kept":
        future = workers[1].fail.call()
        while not future.done():
            await weft.yield_now()
    elif MODE == "work":
        workers[1].work.call()
        for _ in range(3):
            workers.work.call()
    elif MODE == "never":
        workers[1].never.call()
    elif MODE == "elsewhere":
        await workers[1].forget.call()
    elif MODE == "sleep":
        weft.sleep(1)
    elif MODE == "coroutine":
        helper()
    elif MODE == "nothing":
        workers[0].work()
        await weft.gather(workers[1].work.call(), weft.sleep(0))
        workers[1].work.call().then(lambda future: None)
        await weft.quiescence()
        later = workers[0].work_later.call()
        await workers[0].look.call(later)  # its Python object there ends before the outcome is there
        await workers[0].open.call()
        assert await later == 6


weft.run(main)
