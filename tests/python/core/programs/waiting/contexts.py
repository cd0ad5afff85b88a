"""Each coroutine has a context of its own: contextvars, decimal and NumPy's error state; checks itself."""

import asyncio
import contextvars
import decimal
import threading
import warnings

import numpy as np

import weft
from weft import _core

var = contextvars.ContextVar("var", default="default")
var.set("of the script")
warnings.simplefilter("ignore")  # of the division by zero


def seen():
    """What code finds that has set nothing."""
    try:
        np.float64(1) / np.float64(0)
        division = "inf"
    except FloatingPointError:
        division = "FloatingPointError"
    return var.get(), str(decimal.Decimal(1) / decimal.Decimal(7)), division


UNTOUCHED = ("of the script", "0.1428571428571428571428571429", "inf")


class Worker(weft.Chare):
    async def __init__(self):
        var.set("constructor")
        await weft.yield_now()
        assert var.get() == "constructor"

    async def created(self):
        var.set("created")
        await weft.yield_now()
        assert var.get() == "created"

    async def hold(self, entered):
        opened = weft.Future()
        var.set("held")
        with decimal.localcontext() as context, np.errstate(divide="raise"):
            context.prec = 3
            entered.set(opened)
            await opened
            assert seen() == ("held", "0.143", "FloatingPointError")
        token = var.set("inner")
        await weft.yield_now()
        var.reset(token)
        return var.get()

    def look(self):
        return seen()

    async def look_later(self):
        before = seen()
        await weft.yield_now()
        return before, seen()

    async def nested(self):
        """What it gathers, or gives as a callback, sees what it has set, and not the reverse."""
        var.set("caller")

        async def inner(name):
            found = var.get()
            var.set(name)
            await weft.yield_now()
            assert var.get() == name
            return found

        assert await weft.gather(inner("a"), inner("b")) == ["caller", "caller"]
        assert var.get() == "caller"
        assert await inner("same coroutine") == "caller" and var.get() == "same coroutine"
        called = weft.Future()

        def callback(_):
            called.set(var.get())
            var.set("callback")

        var.set("given")
        weft.sleep(0).then(callback)
        var.set("later")
        assert await called == "given" and var.get() == "later"
        return await weft.asyncio_future(in_asyncio())


async def in_asyncio():
    await asyncio.sleep(0)
    return threading.current_thread() is not threading.main_thread()


async def set_in_task(name):
    found = var.get()
    var.set(name)
    await weft.yield_now()
    return found, var.get()


async def main():
    workers = await weft.Array(Worker, 3)
    assert seen() == UNTOUCHED
    for worker in workers:
        assert await worker.look.call() == UNTOUCHED
        entered = weft.Future()
        held = worker.hold.call(entered)
        opened = await entered
        assert await worker.look.call() == UNTOUCHED
        assert await worker.look_later.call() == (UNTOUCHED, UNTOUCHED)
        assert seen() == UNTOUCHED
        opened.set()
        assert await held == "held"
        assert await worker.look.call() == UNTOUCHED
        assert await worker.nested.call()
    assert seen() == UNTOUCHED
    var.set("main")
    assert await workers.look.call() == [UNTOUCHED] * 3
    posted = weft.Future()

    def post():
        posted.set(var.get())
        var.set("posted")

    weft.post_from_any_thread(post)
    assert await posted == "main" and await workers[0].look.call() == UNTOUCHED
    async with weft.Pool() as pool:
        found = await pool.map(set_in_task, ["a", "b", "c"], chunksize=3)
        assert found == [("of the script", "a"), ("of the script", "b"), ("of the script", "c")], found
    # Coroutines that the end of the job cuts off leave their blocks in their own context.
    for worker in workers:
        entered = weft.Future()
        worker.hold(entered)
        await entered
    assert _core._is_pe_thread()
    return "all checked"


result = weft.run(main)
assert var.get() == "of the script"
if result is not None:
    print(result)
