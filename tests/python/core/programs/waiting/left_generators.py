"""Asynchronous generators that are left early run their `finally`: left_generators.py MODE; checks itself.

The mode `raising` ends the job.
"""

import contextvars
import sys
import threading

import weft

ENDED = []
var = contextvars.ContextVar("var", default="before")


async def numbers(name):
    try:
        for i in range(10):
            await weft.yield_now()
            yield i
    finally:
        ENDED.append(f"{name} begins to end")
        await weft.sleep(0)
        await weft.yield_now()
        ENDED.append(f"{name} has ended")


async def quick(name):
    try:
        yield 1
        yield 2
    finally:
        ENDED.append(name)


async def resetting():
    token = var.set("in the generator")
    try:
        yield 1
        yield 2
    finally:
        await weft.yield_now()
        var.reset(token)
        ENDED.append("reset")


async def bad():
    try:
        yield 1
    finally:
        await weft.yield_now()
        raise KeyError("in finally")


async def first_of(generator):
    async for found in generator:
        return found
    return None


class Worker(weft.Chare):
    async def leave(self):
        ENDED.clear()
        async for i in numbers("loop"):
            if i == 3:
                break
        while len(ENDED) < 2:
            await weft.yield_now()
        return ENDED

    async def reset(self):
        ENDED.clear()
        assert await first_of(resetting()) == 1
        while not ENDED:
            await weft.yield_now()
        return var.get()


async def left():
    for ended in await weft.Array(Worker, weft.num_pes()).leave.call():
        assert ended == ["loop begins to end", "loop has ended"], ended
    assert await weft.Singleton(Worker, weft.num_pes() - 1).reset.call() == "before"
    ENDED.clear()
    assert await first_of(quick("quick")) == 1
    assert ENDED == ["quick"], "nothing in its `finally` waits"
    async for _ in numbers("whole"):
        pass
    assert ENDED == ["quick", "whole begins to end", "whole has ended"]
    try:
        async for _ in numbers("raised"):
            raise LookupError
    except LookupError:
        pass
    while ENDED[-1] != "raised has ended":
        await weft.yield_now()
    # Dropped on another thread.
    held = [numbers("thread")]
    await anext(held[0])
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    while ENDED[-1] != "thread has ended":
        await weft.sleep(0)
    print("all checked")


async def at_the_end():
    """The job waits for what main leaves behind."""
    ENDED.clear()
    async for i in numbers("last"):
        if i == 1:
            break
    other = numbers("held")
    await anext(other)


async def raising():
    await first_of(bad())
    await weft.sleep(3600)


MODES = {"left": left, "at_the_end": at_the_end, "raising": raising}
before = sys.get_asyncgen_hooks()
weft.run(MODES[sys.argv[1]])
assert sys.get_asyncgen_hooks() == before
if sys.argv[1] == "at_the_end" and ENDED:  # PE 0
    ends = ("begins to end", "has ended")
    assert sorted(ENDED) == [f"{name} {end}" for name in ("held", "last") for end in ends], ENDED
    print("all checked")
