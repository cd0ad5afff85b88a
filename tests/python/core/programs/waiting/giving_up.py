"""weft.timeout: waits that end early; checks itself."""

import asyncio

import numpy as np
from refusing import refused

import weft


class Worker(weft.Chare):
    def __init__(self):
        self.buffer = np.zeros(4)
        self.left = weft.Future()
        self.given_up = weft.Future()
        self.limit = None

    async def never(self):
        await weft.Future()

    async def fails_late(self, gate):
        await self.given_up
        gate.set()
        raise ValueError("after the caller has given up")

    def give_up(self):
        self.given_up.set()

    async def receive(self, seconds):
        """Gives a receive up, and takes its message later."""
        channel = weft.Channel(self, self.proxy[1 - self.index])
        receiving = channel.recv(self.buffer)
        try:
            async with weft.timeout(seconds):
                await receiving
        except TimeoutError:
            assert not receiving.done(), "the buffer is in use"
        return await channel_ready(self, receiving)

    async def receive_and_drop(self):
        """Gives up a receive that nothing holds; the message still lands in the buffer."""
        channel = weft.Channel(self, self.proxy[1 - self.index], id=2)
        try:
            async with weft.timeout(0.001):
                await channel.recv(self.buffer)
        except TimeoutError:
            pass
        await self.proxy[1 - self.index].send.call(2, 5, 6)
        second = np.zeros(4)
        await channel.recv(second)
        return self.buffer.tolist(), second.tolist()

    async def send(self, channel_id, *values):
        channel = weft.Channel(self, self.proxy[1 - self.index], id=channel_id)
        for value in values:
            await channel.send(np.full(4, float(value)))

    async def wait_until_cancelled(self):
        try:
            async with weft.timeout(None) as self.limit:
                await weft.Future()
        except weft.Error as error:
            return error.code, self.limit.expired()

    def cancel(self):
        if self.limit is None:
            return False
        self.limit.cancel()
        return True


async def channel_ready(worker, receiving):
    await worker.proxy[1 - worker.index].send.call(0, 3)
    got = await receiving
    return got is worker.buffer, got.tolist()


async def times_out(awaitable, seconds=0.001):
    try:
        async with weft.timeout(seconds):
            await awaitable
    except TimeoutError as error:
        assert str(error).startswith("weft.timeout(")
        return True
    return False


async def sleeping(log):
    try:
        await weft.sleep(100)
    finally:
        await weft.sleep(0)  # a block that is given up may still await
        log.append("closed")


async def nested():
    reached = []
    try:
        async with weft.timeout(0.001):
            try:
                async with weft.timeout(100):
                    try:
                        await weft.sleep(100)
                    except Exception:
                        raise AssertionError("it is no Exception") from None
            except TimeoutError:
                raise AssertionError("the inner block has time") from None
    except TimeoutError:
        reached.append("outer")
    async with weft.timeout(100):
        try:
            async with weft.timeout(0.001):
                await weft.sleep(100)
        except TimeoutError:
            reached.append("inner")
        await weft.sleep(0)
    assert reached == ["outer", "inner"]


async def ends_in_time():
    async with weft.timeout(100) as limit:
        await weft.sleep(0)
    assert not limit.expired()
    async with weft.timeout(0):
        pass  # nothing waited
    async with weft.timeout(0) as limit:
        for _ in range(3):
            ready = weft.Future()
            ready.set(1)
            assert await ready == 1
    limit.cancel()  # after its end: nothing happens
    await weft.sleep(0)


async def what_arrives_is_not_lost():
    """The value is there when the time passes: the coroutine gets it, and is interrupted in its next wait."""
    future = weft.Future()
    got = []
    try:
        async with weft.timeout(None) as limit:
            future.then(lambda ready: limit.cancel())
            weft.post_from_any_thread(lambda: future.set("value"))
            got.append(await future)
            await weft.sleep(100)
    except weft.Error as error:
        assert error.code == "cancelled"
    assert got == ["value"]


async def several_waiters(workers):
    """One of several waiters gives up; the others go on."""
    future, both_gave_up = weft.Future(), weft.Future(2)

    async def wait(seconds):
        gave_up = await times_out(future, seconds)
        if gave_up:
            both_gave_up.set()
        return gave_up

    ending = weft.gather(*map(wait, (100, 0.001, 100, 0.002, 100)))

    async def set_later():
        await both_gave_up
        future.set()

    results, _ = await weft.gather(ending, set_later())
    assert results == [False, True, False, True, False]
    a, b = (workers[0], workers[1])
    assert a.index == 0 and b.index == 1


async def gathers():
    log = []
    assert await times_out(weft.gather(sleeping(log), weft.Future(), sleeping(log)))
    while len(log) < 2:
        await weft.yield_now()
    assert log == ["closed", "closed"]
    log.clear()
    inner = sleeping(log)
    try:
        async with weft.timeout(None) as limit:
            limit.cancel()
            await weft.gather(inner)
    except weft.Error:
        pass
    await weft.sleep(0)
    assert log in ([], ["closed"])


async def taken_back():
    """An exception that is taken back before it is raised leaves the wait as it was."""
    begin, first, reached, second, end = (weft.Future() for _ in range(5))
    coroutines = []

    async def wait(_):
        coroutines.append(weft._core._current_coroutine("the test"))
        value = await first
        reached.set()
        try:
            await second
        except KeyError as error:
            end.set((value, error.args[0]))

    begin.then(wait)
    begin.set()
    while not coroutines:
        await weft.yield_now()
    errors = [KeyError(number) for number in range(3)]
    weft._core._interrupt(coroutines[0], errors[0])
    weft._core._take_back(coroutines[0], errors[0])
    first.set(5)
    await reached
    weft._core._interrupt(coroutines[0], errors[1])
    weft._core._take_back(coroutines[0], errors[1])
    weft._core._interrupt(coroutines[0], errors[2])
    assert await end == (5, 2)
    # The wait goes on, for what is not there yet.
    begin, first, reached = weft.Future(), weft.Future(), weft.Future()
    begin.then(wait)
    begin.set()
    while len(coroutines) < 2:
        await weft.yield_now()
    weft._core._interrupt(coroutines[1], errors[0])
    weft._core._take_back(coroutines[1], errors[0])
    for _ in range(3):
        await weft.yield_now()
    assert not reached.done()
    first.set(6)
    await reached


async def main():
    workers = weft.Array(Worker, 2)
    await nested()
    await ends_in_time()
    await what_arrives_is_not_lost()
    await several_waiters(workers)
    await gathers()
    await taken_back()
    assert await times_out(workers[1].never.call())
    assert await times_out(weft.wait([weft.Future()]))
    assert await times_out(weft.Future(3))
    gate = weft.Future()
    assert await times_out(workers[1].fails_late.call(gate))
    workers[1].give_up()
    await gate
    for seconds in 0, 0.001:
        assert await workers[0].receive.call(seconds) == (True, [3.0] * 4)
        assert await workers[1].receive.call(seconds) == (True, [3.0] * 4)
    assert await workers[0].receive_and_drop.call() == ([5.0] * 4, [6.0] * 4)
    waiting = workers[1].wait_until_cancelled.call()
    while not await workers[1].cancel.call():
        pass
    assert await waiting == ("cancelled", False)
    limit = weft.timeout(100)
    async with limit:
        limit.reschedule(0.001)
        try:
            await weft.sleep(100)
        finally:
            assert limit.expired()
    raise AssertionError("it waited")


async def guarded_main():
    try:
        await main()
    except TimeoutError as error:
        assert "in main" not in str(error)
    refused("from 0 to 1e9", weft.timeout, -1)
    limit = weft.timeout(1)
    async with limit:
        pass
    try:
        await weft.asyncio_future(in_asyncio())
    except weft.RemoteError as error:
        assert "asyncio" in error.message
    else:
        raise AssertionError("no error")
    return "all checked"


async def in_asyncio():
    async with weft.timeout(1):
        await asyncio.sleep(0)


result = weft.run(guarded_main)
if result is not None:
    print(result)
