"""Wrong use is refused where it happens, in a sentence that says what to do; checks itself."""

import sys
import threading

import numpy as np
from refusing import refused

import weft


class Worker(weft.Chare):
    def work(self, value=None, *others):
        return value

    def contribute_from_a_thread(self, future):
        outcome = []
        thread = threading.Thread(
            target=lambda: outcome.append(
                refused("post_from_any_thread", self.contribute, 1, weft.Reducer.sum, future)
            )
        )
        thread.start()
        thread.join()
        return outcome

    def channel_ids(self):
        peer = self.proxy[0, 1]
        for number in (-1, 2**32, 2**70):
            refused("from 0 to 2**32 - 1", weft.Channel, self, peer, number)
        refused("integer", weft.Channel, self, peer, 1.5, error=TypeError)
        return repr(weft.Channel(self, peer, id=2**32 - 1))

    def refuse_own(self):
        return [
            refused("Reducer", self.contribute, 1, "sum", weft.Future()),
            refused("target", self.contribute, 1, weft.Reducer.sum, print),
            refused("cannot be sent", self.contribute, lambda: 1, weft.Reducer.gather, weft.Future()),
            refused("target", self.contribute, 1, weft.Reducer.sum, error=TypeError),
            refused("cannot be sent", self.proxy[0, 0].work, self),
        ]


class NotAChare:
    pass


class Anything(dict):
    """Has every attribute, None mostly."""

    __getattr__ = dict.get


def check_codes():
    """Errors of the Python package have a code, as those of the extension module do."""
    for raising in (lambda: weft.asyncio_future(5), lambda: weft.run(5), lambda: weft.Future().result()):
        try:
            raising()
        except weft.Error as error:
            assert error.code == "invalid argument", error.code
        else:
            raise AssertionError("it was not refused")


async def check_then_refused():
    array = np.zeros(8)
    references = sys.getrefcount(array)
    device_array = weft.DeviceArray(8, float, "emulated")
    for _ in range(3):
        operation = device_array.copy_from(array)
        called = weft.Future()
        operation.then(called.set)
        refused("then() takes a function", operation.then, 3)
        await called
        del operation, called
    assert sys.getrefcount(array) == references


async def main():
    class Local(weft.Chare):
        pass

    workers = weft.Array(Worker, (2, 3))
    refused("defined inside a function", weft.Array, Local, 4)
    refused("weft.Chare", weft.Array, NotAChare, 4)
    refused("weft.Chare", weft.Array, 5, 4)
    refused("at least 1", weft.Array, Worker, (2, 0))
    refused("at least 1", weft.Array, Worker, -1)
    refused("1 to 6 dimensions", weft.Array, Worker, (1,) * 7)
    refused("1 to 6 dimensions", weft.Array, Worker, ())
    refused("whole number", weft.Array, Worker, 2.5)
    refused("2^31", weft.Array, Worker, 2**31)
    refused("map", weft.Array, Worker, 4, map="random")
    refused("args=(value,)", weft.Array, Worker, 4, args=3)
    refused("cannot be sent", weft.Array, Worker, 4, args=(lambda: 1,))
    refused("PE", weft.Singleton, Worker, weft.num_pes())
    refused("PE", weft.Singleton, Worker, -1)
    refused("shape (2, 3)", lambda: workers[2, 0])
    refused("shape (2, 3)", lambda: workers[0])
    refused("shape (2, 3)", lambda: workers[-1, 0])
    refused("whole number", lambda: workers["a"])
    refused("no entry method 'wrok'", lambda: workers.wrok, error=AttributeError)
    refused("work", lambda: workers[0, 0].wrok, error=AttributeError)
    refused("argument 1 of Worker[0, 1].work cannot be sent", workers[0, 1].work, lambda: 1)
    refused("argument 2 of Worker.work cannot be sent", workers.work, 0, sys.stdout)
    refused("did you forget `await`?", workers[0, 1].work, workers[0, 0].work.send())
    refused("255", workers[0, 0].work, *range(300))
    refused("called directly", Worker)
    refused("exception", weft.Future().set_error, "no exception")
    refused("not set yet", weft.Future().result)
    refused("function", weft.Future().then, 5)
    refused("seconds", weft.sleep, -1)
    refused("seconds", weft.sleep, float("nan"))
    refused("exit code", weft.exit, 256)
    refused("top level", weft.Reducer.custom, lambda a, b: a)
    refused("running job", weft.run, main)
    assert all(all(answers) for answers in await workers.refuse_own.call())
    assert await workers[1, 2].work.call(np.int64(3)) == 3
    assert await workers[0, 0].contribute_from_a_thread.call(weft.Future()) == [True]
    assert await workers[0, 0].channel_ids.call()
    await check_then_refused()
    check_codes()
    future = weft.Future()
    array = np.arange(3)
    future.set(weft.nocopy(array))
    assert await future is array
    assert await workers[0, 0].work.call(Anything(a=1)) == {"a": 1}
    # What another thread does would not wake a sleeping PE, so it has to be handed over.
    outcomes = []
    thread = threading.Thread(
        target=lambda: outcomes.extend(
            refused("post_from_any_thread", call)
            for call in (weft.yield_now, weft.progress, weft.quiescence, weft.exit)
        )
    )
    thread.start()
    while thread.is_alive():
        await weft.sleep(0.001)
    assert outcomes == [True] * 4
    # As every attribute access on a proxy makes a value of its own, these hold after their proxy is gone.
    method = weft.Array(Worker, 1)[0].work
    assert await method.call(4) == 4
    return workers, method, weft.Future()


kept = weft.run(main)
if kept is not None:
    workers, method, future = kept
    refused("has ended", lambda: workers[0, 0])
    refused("has ended", method)
    refused("has ended", future.set, 1)
    refused("no job", weft.Future)
    refused("no job", weft.Array, Worker, 3)
    print("all checked")
