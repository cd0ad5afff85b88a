"""weft.gather, weft.wait and weft.as_completed: waiting_together.py MODE."""

import gc
import sys

import numpy as np

import weft
from weft._await.waiting import _Watch


class Worker(weft.Chare):
    def __init__(self):
        self.told = weft.Future()

    async def work(self, seconds, value):
        await weft.sleep(seconds)
        if isinstance(value, str):
            raise ValueError(value)
        return value

    async def work_when_told(self, value):
        await self.told
        return value

    def tell(self):
        self.told.set()

    async def gather_inside(self, others):
        return await weft.gather(*[other.work.call(0, i) for i, other in enumerate(others)])

    async def exchange(self):
        other = weft.Channel(self, self.proxy[1 - self.index])
        received = np.zeros(50_000)
        ours = np.full(50_000, self.index + 1.0)
        operations = [other.send(ours), other.recv(received)]
        done, pending = await weft.wait(operations)
        assert done == operations and pending == []
        assert await operations[1] is received
        return float(received[0])

    async def look_first(self):
        """An operation that weft.wait gave up on is awaited in every way."""
        other = weft.Channel(self, self.proxy[1 - self.index])
        received = np.zeros(50_000)
        operation = other.recv(received)
        for timeout in (0, 0.01):
            assert await weft.wait([operation], timeout=timeout) == ([], [operation])
        called, others = [], []
        for i in range(2):
            operation.then(lambda done, i=i: called.append((i, done.result() is received)))

        async def also():
            others.append(await operation is received)

        waits = weft.gather(also(), also(), operation)
        weft.sleep(0.01).then(lambda _: self.proxy[1 - self.index].send_to(self.proxy[self.index]))
        assert (await waits)[2] is received
        assert await operation is received
        assert called == [(0, True), (1, True)] and others == [True, True], (called, others)
        return float(received[0])

    async def send_to(self, peer):
        await weft.Channel(self, peer).send(np.full(50_000, 3.0))

    async def give_up_and_fail(self, peer):
        operation = weft.Channel(self, peer).recv(np.zeros(10))
        assert await weft.wait([operation], timeout=0.01) == ([], [operation])
        weft.sleep(0.01).then(lambda _: Worker.send_few(self, peer))
        codes = []
        for _ in range(2):
            try:
                await operation
            except weft.Error as error:
                codes.append(error.code)
        return codes

    def send_few(self, peer):
        peer.send_wrong(self.proxy[self.index])

    async def send_wrong(self, peer):
        await weft.Channel(self, peer).send(np.zeros(9))


async def error_of(awaitable):
    try:
        await awaitable
    except Exception as error:
        return error
    return None


async def gather():
    workers = weft.Array(Worker, 4)
    assert await weft.gather() == []
    assert await weft.gather(*[w.work.call(0.01 * (3 - i), i) for i, w in enumerate(workers)]) == [0, 1, 2, 3]
    assert await workers[3].gather_inside.call(list(workers)) == [0, 1, 2, 3]

    async def local(value):
        await weft.sleep(0.01)
        if value < 0:
            raise KeyError(value)
        return value

    one = workers[0].work.call(0, 7)
    assert await weft.gather(local(1), one, local(2), one, weft.sleep(0)) == [1, 7, 2, 7, None]
    group, array = await weft.gather(weft.Group(Worker), weft.Array(Worker, 2))
    assert len(group) == weft.num_pes() and len(array) == 2
    error = await error_of(weft.gather(local(1), local(-1)))
    assert type(error) is KeyError, error
    error = await error_of(weft.gather(workers[0].work.call(10, 1), workers[1].work.call(0, "soon")))
    assert error.type_name == "ValueError", error
    results = await weft.gather(workers[0].work.call(0, "bad"), local(3), local(-2), return_exceptions=True)
    assert results[0].message == "bad" and results[1] == 3 and type(results[2]) is KeyError, results


async def wait():
    workers = weft.Array(Worker, 4)
    quick, slow = workers[0].work.call(0, 1), workers[1].work_when_told.call(2)
    for _ in range(1000):  # leaves nothing behind
        assert await weft.wait([slow], timeout=0) == ([], [slow])
    assert _Watch.known[id(slow)].waits == {}
    assert await weft.wait([slow, quick], first=True) == ([quick], [slow])
    assert await weft.wait([slow, quick], timeout=0.001) == ([quick], [slow])
    workers[1].tell()
    assert await weft.wait([slow, quick], timeout=100) == ([slow, quick], [])
    assert _Watch.known == {}
    assert (await quick, await slow) == (1, 2)
    assert await weft.wait([]) == ([], [])
    assert await weft.wait([], first=True) == ([], [])
    failing = workers[2].work.call(0, "fails")
    done, pending = await weft.wait([failing])
    assert (done, pending) == ([failing], [])
    assert (await error_of(failing)).type_name == "ValueError"
    never = weft.Future()
    for wrong in ([never, never], [3], [never, workers], never, quick):
        error = await error_of(weft.wait(wrong, timeout=1))
        assert isinstance(error, weft.Error), error
    for timeout in ("1", float("nan")):
        error = await error_of(weft.wait([never], timeout=timeout))
        assert isinstance(error, weft.Error) and "timeout is a number" in str(error), error
    assert await weft.wait([quick], timeout=float("inf")) == ([quick], [])
    # A loop of looks lets the call run.
    call = workers[3].work.call(0, 4)
    while (await weft.wait([call], timeout=0))[1]:
        pass
    assert await call == 4
    assert id(never) not in _Watch.known or _Watch.known[id(never)].waits == {}

    # Two coroutines wait for one thing.
    async def give_up_and_set():
        given_up = await weft.wait([never], timeout=0.01)
        never.set(5)
        return given_up

    both = weft.gather(give_up_and_set(), weft.wait([never], timeout=100))
    assert await both == [([], [never]), ([never], [])]
    exchanged = await weft.Array(Worker, 2).exchange.call()
    assert exchanged == [2.0, 1.0], exchanged
    assert await weft.Array(Worker, 2)[0].look_first.call() == 3.0
    pair = weft.Array(Worker, 2)
    assert await pair[0].give_up_and_fail.call(pair[1]) == ["truncated"] * 2


async def as_completed():
    workers = weft.Array(Worker, 4)
    calls = {workers[i].work_when_told.call(i): i for i in range(4)}
    workers[3].tell()
    order = []
    async for call in weft.as_completed(calls):
        order.append((calls[call], await call))
        if len(order) < 4:
            workers[3 - len(order)].tell()
    assert order == [(3, 3), (2, 2), (1, 1), (0, 0)], order
    assert [call async for call in weft.as_completed([])] == []
    never = weft.Future()
    got = []
    over = workers[0].work.call(0, 8)
    await weft.wait([over])
    try:
        async for call in weft.as_completed([never, over], timeout=0.05):
            got.append(await call)
    except TimeoutError as error:
        assert "1 of 2" in str(error), error
    else:
        raise AssertionError("no timeout")
    assert got == [8]
    async for call in weft.as_completed([never, workers[0].work.call(0, 9)]):
        assert await call == 9
        break
    del call
    gc.collect()
    assert _Watch.known[id(never)].waits == {}


weft.run(globals()[sys.argv[1]])
print("all checked")
