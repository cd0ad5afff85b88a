"""Futures of several values; checks itself. "too many": another PE sets one once more than it may."""

import gc
import sys

import numpy as np

import weft


class Sender(weft.Chare):
    def send(self, future):
        future.set((self.index, weft.my_pe()))

    def send_large(self, future):
        future.set(np.full(100_000, self.index))

    def send_or_fail(self, future, failing):
        if self.index in failing:
            future.set_error(ValueError(f"no value of {self.index}"))
        else:
            future.set(self.index)

    def give_sum(self, future):
        self.contribute(self.index, weft.Reducer.sum, future)

    def give_nothing(self, future):
        self.contribute(target=future)

    async def send_in_order(self, future, count):
        for i in range(count):
            future.set(i)
            await weft.yield_now()

    def pass_on(self, future, to):
        to.send(future)


def error_of(function):
    try:
        function()
    except Exception as error:
        return error
    return None


async def awaited_error(future):
    try:
        await future
    except weft.Error as error:
        return error
    return None


async def check_values():
    count = 3 * weft.num_pes()
    senders = weft.Array(Sender, count)
    future = weft.Future(count)
    assert not future.done()
    assert "not set yet" in str(error_of(future.result))
    senders.send(future)
    values = await future
    assert sorted(index for index, _ in values) == list(range(count)), values
    assert {pe for _, pe in values} == set(range(weft.num_pes()))
    assert future.done() and future.result() == values

    large = weft.Future(count)
    senders.send_large(large)
    assert sorted(array[-1] for array in await large) == list(range(count))

    passed = weft.Future(num_values=count)
    senders.pass_on(passed, senders[count - 1])
    assert await passed == [(count - 1, weft.num_pes() - 1)] * count

    # One sender's values keep their order only if they travel one way; here they come from this PE.
    ordered = weft.Future(5)
    await senders[0].send_in_order.call(ordered, 5)
    assert await ordered == [0, 1, 2, 3, 4]


async def check_numbers():
    assert await weft.Future(0) == []
    single = weft.Future(1)
    single.set("x")
    assert await single == ["x"]
    plain = weft.Future(None)
    plain.set("x")
    assert await plain == "x"
    for wrong, kind in ((-1, weft.Error), (2**63, weft.Error), (1.5, TypeError), ("2", TypeError)):
        error = error_of(lambda wrong=wrong: weft.Future(wrong))
        assert isinstance(error, kind), (wrong, error)
    for future, values in ((weft.Future(0), 0), (weft.Future(2), 2)):
        for _ in range(values):
            future.set(None)
        assert "set more often than it has values" in str(error_of(lambda future=future: future.set(1)))
        assert "set more often" in str(error_of(lambda future=future: future.set_error(ValueError())))
        assert await future == [None] * values


async def check_waiters():
    future = weft.Future(2)
    seen = []
    future.then(lambda ready: seen.append(ready.result()))
    future.set(1)
    await weft.yield_now()
    assert not future.done() and seen == []
    future.set(2)
    assert await future == [1, 2]
    await weft.yield_now()
    assert seen == [[1, 2]]

    first, second = weft.Future(2), weft.Future(2)
    for value in "ab":
        first.set(value)
        second.set(value * 2)
    assert await weft.gather(first, second) == [["a", "b"], ["aa", "bb"]]


async def check_errors():
    """The first error is the result, and the values that come later are dropped."""
    count = 3 * weft.num_pes()
    senders = weft.Array(Sender, count)
    for failing in ([0], [count - 1], list(range(count))):
        future = weft.Future(count)
        senders.send_or_fail(future, failing)
        error = await awaited_error(future)
        assert isinstance(error, weft.RemoteError) and error.type_name == "ValueError", error
        await weft.quiescence()
        assert "no value of" in str(await awaited_error(future))
        dropped = weft.Future(count)
        senders.send_or_fail(dropped, failing)
        del future, dropped
        gc.collect()
        await weft.quiescence()
    # An error as one of two: exactly one more value is taken, and dropped.
    future = weft.Future(2)
    future.set_error(KeyError("k"))
    assert future.done()
    future.set(1)
    assert "set more often" in str(error_of(lambda: future.set(2)))
    assert (await awaited_error(future)).type_name == "KeyError"


async def check_reductions():
    """Results of reductions are values as well."""
    future = weft.Future(3)
    first, second = weft.Array(Sender, 4), weft.Group(Sender)
    first.give_sum(future)
    second.give_sum(future)
    first.give_nothing(future)
    expected = [6, sum(range(weft.num_pes())), None]
    assert sorted(await future, key=repr) == sorted(expected, key=repr)


async def main():
    await check_values()
    await check_numbers()
    await check_waiters()
    await check_errors()
    await check_reductions()
    return "all checked"


async def too_many():
    future = weft.Future(2)
    senders = weft.Group(Sender)
    for _ in range(3):
        senders[1].send(future)
    await future
    await weft.sleep(10)


result = weft.run(too_many if "too many" in sys.argv else main)
if result is not None:
    print(result)
