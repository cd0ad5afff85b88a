"""Runs after each other in one process, and a plain main; checks itself."""

import asyncio
import gc
import os
import signal
import threading
import weakref

import weft
import weft._await.waiting


class Worker(weft.Chare):
    def work(self, x):
        if x == 0:
            weft.exit()
        else:
            self.proxy[0].work(x - 1)


async def first():
    return weft.num_pes()


def second():
    weft.Array(Worker, 2)[1].work(3)


first_has_ended = threading.Event()
kept = []


async def held():
    await asyncio.to_thread(first_has_ended.wait)


async def leaves_behind():
    kept.append(weft.asyncio_future(held()))


async def others():
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        await task


async def follow(future):
    await weft.as_asyncio(future)


async def in_the_child():
    return "in the child"


async def uses_asyncio():
    return await weft.asyncio_future(in_the_child())


async def comes_after():
    """What asyncio still does for the job before is dropped."""
    first_has_ended.set()
    await weft.asyncio_future(others())  # it comes after what `held` posts
    try:
        await weft.asyncio_future(follow(kept[0]))
    except weft.RemoteError as error:
        assert "has ended" in error.message
        return "dropped"


assert weft.run(first) == 1
assert weft.run(second) is None
try:
    weft.run(lambda: 1 / 0)
except ZeroDivisionError:
    pass


class Held:
    pass


held_by_main = []


async def raises():
    held_by_main.append(weakref.ref(here := Held()))
    workers = weft.Array(Worker, 2)
    raise ValueError(here, workers)


try:
    weft.run(raises)
except ValueError:
    pass
gc.collect()
assert held_by_main[0]() is None, "the engine keeps what main has raised"


async def waits_in_vain():
    future = weft.Future()
    assert await weft.wait([future], timeout=0) == ([], [future])


weft.run(waits_in_vain)
assert not weft._await.waiting._Watch.known

held_by_callbacks = []


async def calls_back_in_vain():
    here = Held()
    held_by_callbacks.append(weakref.ref(here))
    weft.Future().then(lambda _: here)


weft.run(calls_back_in_vain)
gc.collect()
assert held_by_callbacks[0]() is None, "a callback of a future that is never set keeps the engine"
weft.run(leaves_behind)
assert weft.run(comes_after) == "dropped"

child = os.fork()  # it has no thread for the event loop
if child == 0:
    signal.alarm(30)  # ends it if it hangs
    os._exit(0 if weft.run(uses_asyncio) == "in the child" else 1)
assert os.waitpid(child, 0)[1] == 0
print("all checked")
