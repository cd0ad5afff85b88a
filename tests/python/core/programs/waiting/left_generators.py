"""Asynchronous generators that are left early run their `finally`: left_generators.py MODE; checks itself.

The mode `raising` ends the job.
"""

import contextvars
import gc
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


async def setting(future):
    try:
        yield 1
    finally:
        future.set(threading.get_ident())


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

    async def leave_to_the_collector(self):
        ENDED.clear()
        cycle = [resetting()]
        cycle.append(cycle)
        assert await anext(cycle[0]) == 1
        del cycle
        while not ENDED:
            await weft.yield_now()
        return var.get()

    async def name_the_setter(self, future):
        cycle = [setting(future)]
        cycle.append(cycle)
        await anext(cycle[0])

    async def hold_in_its_own_context(self):
        ENDED.clear()
        held = quick("held by its context")
        var.set(held)
        await anext(held)

    async def collect(self):
        token = var.set("in the collector's coroutine")
        gc.collect()
        await weft.yield_now()
        var.reset(token)
        return threading.get_ident()


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


async def collected():
    """The collector runs in the code of another chare than that of the generator."""
    gc.disable()
    first, second = weft.Array(Worker, 2 * weft.num_pes())[0:2]
    left_behind = first.leave_to_the_collector.call()
    await second.collect.call()
    assert await left_behind == "before"
    future = weft.Future()
    await first.name_the_setter.call(future)
    ident = await second.collect.call()
    assert await future == ident, "the thread of the PE"
    try:
        future.set(1)
    except weft.Error as error:
        assert "Worker[0] on PE 0 (setting, left_generators.py:" in str(error), error
    else:
        raise AssertionError("a future was set twice")
    await first.hold_in_its_own_context.call()
    await second.collect.call()
    assert ENDED == ["held by its context"], ENDED
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


MODES = {"left": left, "collected": collected, "at_the_end": at_the_end, "raising": raising}
before = sys.get_asyncgen_hooks()
weft.run(MODES[sys.argv[1]])
assert sys.get_asyncgen_hooks() == before
if sys.argv[1] == "at_the_end" and ENDED:  # PE 0
    ends = ("begins to end", "has ended")
    assert sorted(ENDED) == [f"{name} {end}" for name in ("held", "last") for end in ends], ENDED
    print("all checked")
