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


class Outside(threading.Thread):
    """An event loop of the program's own, on a thread that the process waits for."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()

    def run(self):
        self.loop.run_forever()
        self.loop.close()

    def follow(self, awaited):
        """(the asyncio future that follows `awaited`,) made in the loop."""
        return asyncio.run_coroutine_threadsafe(following(awaited), self.loop).result()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()


async def following(awaited):
    return (weft.as_asyncio(awaited),)


async def outcome(future):
    try:
        return await future
    except weft.Error as error:
        return error.code


async def with_a_closed_loop():
    """A loop that has closed does not end the job when what its future follows is set."""
    future = weft.Future()
    closed = Outside()
    closed.start()
    (followed,) = closed.follow(future)
    await weft.sleep(0)  # the PE follows it from here on
    closed.stop()
    future.set(5)
    await weft.sleep(0)
    assert await future == 5 and not followed.done()


async def leaving_pending(outside):
    """What is not set when the job ends, and what the PE has not begun to follow by then."""
    return outside.follow(weft.Future()) + outside.follow(weft.Future())


async def main_and_edges():
    result = await main()
    await with_a_closed_loop()
    return result, await leaving_pending(OUTSIDE)


OUTSIDE = Outside()
OUTSIDE.start()
result = weft.run(main_and_edges)
if result is not None:
    for pending in result[1]:
        settled = asyncio.run_coroutine_threadsafe(outcome(pending), OUTSIDE.loop)
        assert settled.result(timeout=30) == "closed"
    print(result[0])
OUTSIDE.stop()
