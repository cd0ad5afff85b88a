"""Between asyncio and Weft; checks itself."""

import asyncio
import sys
import threading

import numpy as np
from refusing import refused

import weft


class Worker(weft.Chare):
    async def fetch(self, seconds):
        return await weft.asyncio_future(delayed(seconds, self.index))

    def double(self, x):
        return 2 * x

    def first_of(self, array):
        return array[0]


async def delayed(seconds, value):
    await asyncio.sleep(seconds)
    return value


async def failing():
    raise LookupError("from asyncio")


async def cancelled():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def cancelling_others(started, go_on):
    """Blocks the loop, then cancels a task that was started meanwhile, before its first step."""
    started.set()
    go_on.wait()
    await asyncio.sleep(0)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def leaving():
    sys.exit(2)


async def interrupted():
    raise KeyboardInterrupt


async def with_a_task_that_leaves():
    task = asyncio.create_task(leaving())
    await asyncio.wait([task])
    return task.exception().code


async def inside_asyncio(awaited):
    return await weft.as_asyncio(awaited)


async def gathered(*futures):
    return await asyncio.gather(*map(weft.as_asyncio, futures))


async def raised_by(coroutine):
    try:
        await weft.asyncio_future(coroutine)
    except weft.RemoteError as error:
        return error
    raise AssertionError("no exception")


async def main():
    workers = weft.Array(Worker, 3)
    assert await workers.fetch.call(0.01) == [0, 1, 2]
    error = await raised_by(failing())
    assert error.type_name == "LookupError" and "from asyncio" in str(error)
    error = await raised_by(cancelled())
    assert error.type_name.endswith("CancelledError") and "coroutine cancelled was cancelled" in error.message
    assert "in cancelled" in error.traceback_text
    refused("call the async function", weft.asyncio_future, failing)

    started, go_on = threading.Event(), threading.Event()
    cancelling = weft.asyncio_future(cancelling_others(started, go_on))
    while not started.is_set():
        await weft.sleep(0.001)
    never_run = weft.asyncio_future(delayed(0, "never"))
    go_on.set()
    await cancelling
    try:
        raise AssertionError(await never_run)
    except weft.RemoteError as raised:
        assert "the coroutine delayed was cancelled" in raised.message

    # Nothing ends the event loop.
    error = await raised_by(leaving())
    assert (error.type_name, error.message) == ("SystemExit", "2")
    assert (await raised_by(interrupted())).type_name == "KeyboardInterrupt"
    assert await weft.asyncio_future(with_a_task_that_leaves()) == 2
    assert await weft.asyncio_future(delayed(0, "on it goes")) == "on it goes"

    assert await weft.asyncio_future(inside_asyncio(workers[2].double.call(20))) == 40
    calls = [worker.double.call(i) for i, worker in enumerate(workers)]
    assert await weft.asyncio_future(gathered(*calls)) == [0, 2, 4]
    assert await weft.asyncio_future(inside_asyncio(workers[2].first_of.send(np.ones(10_000)))) is None
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
