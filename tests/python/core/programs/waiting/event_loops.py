"""Calls, futures and waits in event loops and threads beside the PE's; checks itself."""

import asyncio
import concurrent.futures
import gc
import threading
import weakref

import numpy as np

import weft
from weft._await import asyncio_edge


class Store(weft.Chare):
    def __init__(self):
        self.values = {}
        self.gate = weft.Future()

    def put(self, key, value):
        self.values[key] = value
        return len(self.values)

    def get(self, key):
        return self.values[key]

    def first_of(self, array):
        return float(array[0]), array.size

    async def wait(self):
        await self.gate
        return "open"

    def open(self):
        self.gate.set()

    def set(self, future, value):
        future.set(value)


async def calls(stores, sections):
    assert len(stores) == 4 and stores.shape == (4,) and stores[1].index == 1
    assert [store.index for store in stores] == [0, 1, 2, 3]
    assert await stores[1].put.call("a", 1) == 1
    assert await stores.put.call("b", 2) == [1, 2, 1, 1]
    assert await sections[0].put.call("c", 3) == [2, 3]
    assert await sections[1].put.call("d", 4) == [3, 4, 2, 2]
    named = stores[1].get.call("a")
    assert "of Store[1].get" in repr(named), named
    await named
    assert await stores[1].put.bind("e").call(5) == 5
    await stores[2].put("f", 6)
    await stores[2].put.send("g", np.zeros(3))
    assert await stores[2].get.call("f") == 6
    await stores[2].set.bind(made := weft.Future())(7)
    assert await made == 7 and made.done() and made.result() == 7
    assert [await one for one in [stores[0].get.call("b"), stores[1].get.call("b")]] == [2, 2]


async def values_of_arguments(stores):
    """An argument may change when the call has returned, although the PE has not sent it."""
    for size in 10, 300, 100_000:
        array = np.full(size, 7.0)
        call = stores[1].first_of.call(array)
        array[:] = 8
        got = await call
        assert got == (7.0, size), (got, size)
    array = np.full(100_000, 9.0)
    sending = stores[3].first_of.send(weft.nocopy(array))
    assert not array.flags.writeable, "it is sent in place"
    await sending
    assert array.flags.writeable


def put_too_many(store):
    """A loop of calls without an await waits for the PE, and none of them is lost."""
    array = np.zeros(1 << 20)
    for i in range(20):
        store.put(f"big {i % 2}", array)
    weft.as_concurrent(store.put.call("after", 1)).result(timeout=30)


class Turn:
    """Keeps the PE's thread."""

    def __init__(self):
        self.is_kept, self.goes_on = threading.Event(), threading.Event()

    def keep(self):
        self.is_kept.set()
        assert self.goes_on.wait(timeout=60)


async def too_many_in_a_loop(stores):
    """A call in an event loop must not wait: it is refused while the PE's thread has too much to send."""
    turn = Turn()
    weft.post_from_any_thread(turn.keep)
    await asyncio.get_running_loop().run_in_executor(None, turn.is_kept.wait)
    array = np.zeros(1 << 20)
    sent = []
    try:
        while len(sent) < 100:
            sent.append(stores[1].put.send("big", array))
    except weft.Error as error:
        assert error.code == "out of memory" and "await some of the earlier calls" in str(error), error
    else:
        raise AssertionError("it was not refused")
    finally:
        turn.goes_on.set()
    await weft.gather(*sent)
    await stores[1].put("big", array)


async def errors(stores):
    try:
        await stores[0].get.call("nowhere")
    except weft.RemoteError as error:
        assert error.type_name == "KeyError" and "nowhere" in error.message
    else:
        raise AssertionError("no exception")
    for made in lambda: stores[0].missing, lambda: stores[9]:
        try:
            made()
        except (AttributeError, weft.Error):
            continue
        raise AssertionError("no exception")
    try:
        await stores[0].put.call("lock", threading.Lock())
    except weft.Error as error:
        assert "cannot be sent" in str(error)
    else:
        raise AssertionError("no exception")


async def giving_up(stores):
    """A cancelled wait leaves the call; its outcome is dropped, also an exception."""
    waiting = stores[0].wait.call()
    try:
        await asyncio.wait_for(waiting, 0.01)
    except (TimeoutError, asyncio.TimeoutError):
        assert not waiting.done()
    else:
        raise AssertionError("it waited")

    async def wait():
        await waiting

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    (error,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(error, asyncio.CancelledError)
    lost = asyncio.ensure_future(stores[1].get.call("nowhere"))
    await asyncio.sleep(0)
    lost.cancel()
    await stores[1].get.call("b")  # after the lost one
    await stores[0].open()
    assert await waiting == "open" and waiting.done()
    assert await waiting == "open", "it may be awaited again"
    await cancelled_wait()


async def cancelled_wait():
    """A wait that is cancelled drops what it waits for, also an exception."""
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    failing, after = weft.Future(), weft.Future()
    task = asyncio.create_task(weft.wait([failing, weft.Future()]))
    await asyncio.sleep(0)
    task.cancel()
    (error,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(error, asyncio.CancelledError)
    failing.set_error(ValueError("nobody waits"))
    after.set()
    await after
    del task, error
    gc.collect()
    assert told == [], told
    asyncio.get_running_loop().set_exception_handler(None)


async def several(stores):
    numbers = range(2000)
    sizes = await asyncio.gather(*[stores[i % 4].put.call(i, i) for i in numbers])
    assert len(sizes) == 2000
    assert await weft.gather(*[stores[i % 4].get.call(i) for i in numbers]) == list(numbers)
    once = stores[0].get.call("b")
    assert await weft.gather(once, asyncio.sleep(0, "slept"), once) == [2, "slept", 2]
    value, error = await weft.gather(once, stores[0].get.call("nowhere"), return_exceptions=True)
    assert value == 2 and isinstance(error, weft.RemoteError)
    never = weft.Future()
    calls = [never, stores[0].get.call("b"), stores[0].get.call("nowhere")]
    assert await weft.wait(calls[1:]) == (calls[1:], [])
    assert await weft.wait(calls, timeout=0.01) == (calls[1:], [never])
    assert await weft.wait(calls, first=True) == (calls[1:], [never])
    assert await weft.wait([]) == ([], [])
    soon = weft.Future()
    asyncio.get_running_loop().call_soon(soon.set)
    assert await weft.wait([never, soon], first=True) == ([soon], [never])
    for next_one in asyncio.as_completed([stores[i].get.call("b") for i in range(4)]):
        assert await next_one == 2


async def futures():
    """Futures that other threads make, set and give callbacks."""
    future, called = weft.Future(), weft.Future()
    future.then(called.set)
    value = [1]
    future.set(value)
    value.append(2)
    assert await future == [1] and (await called) is future
    failed = weft.Future()
    failed.set_error(LookupError("here"))
    try:
        await failed
    except weft.RemoteError as error:
        assert error.type_name == "LookupError"
    else:
        raise AssertionError("no exception")
    try:
        future.set(3)
    except weft.Error as error:
        assert "second time" in str(error)
    else:
        raise AssertionError("set twice")
    several_values = weft.Future(2)
    several_values.set(1)
    several_values.set(2)
    assert await several_values == [1, 2]


async def in_a_loop(stores, sections):
    await calls(stores, sections)
    await values_of_arguments(stores)
    await errors(stores)
    await giving_up(stores)
    await several(stores)
    await futures()
    return "all"


def sections_of(stores):
    return [stores[0:2], weft.combine(stores[0:2], stores[2:4])]


def in_a_thread(stores):
    """Without an event loop."""
    assert weft.as_concurrent(stores[1].put.call("thread", 1)).result(timeout=30) > 0
    put_too_many(stores[1])
    try:
        weft.as_concurrent(stores[1].get.call("nowhere")).result(timeout=30)
    except weft.RemoteError as error:
        assert error.type_name == "KeyError"
    else:
        raise AssertionError("no exception")
    never = weft.as_concurrent(weft.Future())
    try:
        never.result(timeout=0.01)
    except (TimeoutError, concurrent.futures.TimeoutError):
        assert never.cancel()
    return "all"


def run_in_thread(function, *arguments):
    """A weft.Future of what it returns on a thread of its own."""
    future = weft.Future()

    def run():
        try:
            future.set(function(*arguments))
        except BaseException as error:
            future.set_error(error)

    threading.Thread(target=run).start()
    return future


PENDING = {}


def left_behind(loop_is_running):
    """Waits when the job ends."""

    async def wait():
        future = weft.Future()
        loop_is_running.set()
        try:
            await future
        except weft.Error as error:
            PENDING["loop"] = error.code

    asyncio.run(wait())


def wait_in_a_thread(is_waiting):
    waiting = weft.as_concurrent(weft.Future())
    is_waiting.set()
    try:
        waiting.result(timeout=30)
    except weft.Error as error:
        PENDING["thread"] = error.code


async def main():
    stores, others = weft.Array(Store, 4), weft.Array(Store, 4)
    # In Weft's own loop and in that of another thread at the same time.
    ends = [
        weft.asyncio_future(in_a_loop(stores, sections_of(stores))),
        run_in_thread(asyncio.run, in_a_loop(others, sections_of(others))),
    ]
    assert await weft.gather(*ends) == ["all", "all"]
    await weft.asyncio_future(too_many_in_a_loop(stores))
    assert await run_in_thread(in_a_thread, stores) == "all"
    for function in left_behind, wait_in_a_thread:
        waits = threading.Event()
        thread = threading.Thread(target=function, args=(waits,))
        THREADS.append(thread)
        thread.start()
        while not waits.is_set():
            await weft.sleep(0.001)
    return "all checked"


class Guarded(weakref.WeakKeyDictionary):
    """Loops of all threads come in while the end of the job lists them."""

    def setdefault(self, *arguments):
        assert asyncio_edge._lock.locked()
        return super().setdefault(*arguments)

    def values(self):
        assert asyncio_edge._lock.locked()
        return super().values()


asyncio_edge._inboxes = Guarded()
THREADS = []
result = weft.run(main)
for thread in THREADS:
    thread.join(timeout=30)
if result is not None:
    assert PENDING == {"loop": "closed", "thread": "closed"}, PENDING
    print(result)
