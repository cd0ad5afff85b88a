"""Turns: what awaits only what is ready, yield_now and progress; checks itself."""

import asyncio

import weft

# Many more than a PE that waits for its core lets pass: the loop ends when the call comes.
NUM_AWAITS = 50_000_000


class ByNext:
    """Awaits as CPython from 3.12 on does, which calls next() where older versions call send(None)."""

    def __init__(self, awaited):
        self._awaited = awaited

    def __await__(self):
        iterator = self._awaited.__await__()
        while True:
            try:
                waits_for = next(iterator)
            except StopIteration as stop:
                return stop.value
            yield waits_for


class Worker(weft.Chare):
    stopped = False

    def stop(self):
        Worker.stopped = True

    def stop_on(self, index):
        self.proxy[index].stop()

    async def count_ready_futures(self, by_next):
        ready = weft.Future()
        ready.set(5)
        awaits = 0
        while awaits < NUM_AWAITS and not Worker.stopped:
            assert await (ByNext(ready) if by_next else ready) == 5
            awaits += 1
        return awaits

    async def await_one_operation_often(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        sending = channel.send(b"12345678")
        await channel.recv(into=bytearray(8))
        for _ in range(2000):
            assert await sending is None, "several forced turns"

    def compute(self):
        """A message is under way to this PE: progress() brings it in and does not run it."""
        looks = 0
        while not weft.progress():
            looks += 1
            assert looks < NUM_AWAITS
        assert not Worker.stopped

    async def compute_and_yield(self):
        self.proxy[self.index].stop()
        assert weft.progress() and not Worker.stopped
        await weft.yield_now()
        assert Worker.stopped


async def foreign_loop():
    """asyncio steps these awaits, and cannot wait for anything of Weft: ready futures must stay ready."""
    ready = weft.Future()
    ready.set(7)
    for _ in range(2000):
        assert await ready == 7


async def main():
    order = []
    future = weft.Future()
    future.then(lambda _: order.append("callback"))
    future.set()
    await weft.yield_now()
    order.append("main")
    assert order == ["callback", "main"]

    workers = weft.Group(Worker)
    last = weft.num_pes() - 1
    for by_next in (False, True):
        Worker.stopped = False
        loop = workers[0].count_ready_futures.call(by_next)
        workers[last].stop_on(0)
        awaits = await loop
        assert awaits < NUM_AWAITS, "the call that was to stop the loop did not run in it"

    Worker.stopped = False
    await weft.Array(Worker, 2).await_one_operation_often.call()
    computing = workers[0].compute.call()
    workers[last].stop_on(0)
    await computing
    await weft.quiescence()
    Worker.stopped = False
    await workers[0].compute_and_yield.call()
    asyncio.run(foreign_loop())
    return True


if weft.run(main):
    print("all checked")
