"""Futures in chares that move. Prints "all checked".

moving_futures.py values|waiting|random|device KIND|failing CASE
"""

from __future__ import annotations

import os
import random
import sys
import threading
from typing import Any

import numpy as np

import weft
from weft import _core

MODE = sys.argv[1]


class Hand(weft.Chare):
    def set(self, future: weft.Future[Any], value: object) -> None:
        future.set(value)

    def fail(self, future: weft.Future[Any], text: str) -> None:
        future.set_error(ValueError(text))

    async def slow(self, gate: weft.Future[Any]) -> Any:
        return await gate

    def gate(self) -> weft.Future[Any]:
        self.opened: weft.Future[Any] = weft.Future()
        return self.opened

    async def answer(self, number: int) -> int:
        await self.opened
        if number < 0:
            raise KeyError(number)
        return number + 1


class Keeper(weft.Chare):
    def __init__(self) -> None:
        self.done_on_arrival: bool | None = None
        self.called: list[Any] = []

    def make(self, num_values: int | None = None) -> weft.Future[Any]:
        self.future: weft.Future[Any] = weft.Future(num_values)
        self.nested = {"same": [self.future]}
        return self.future

    def keep(self, future: weft.Future[Any]) -> None:
        self.future = future
        self.nested = {"same": [self.future]}

    def ask(self, hand: Any, number: int) -> None:
        self.keep(hand.answer.call(number))

    def set(self, value: object) -> None:
        self.future.set(value)

    def set_to_itself(self) -> None:
        self.future.set([self.future, 5])

    def set_to_lock(self) -> None:
        _core._hand_over(self.future, threading.Lock())  # what future.set() refuses

    def drop_in_thread(self) -> None:
        """The last holder goes on another thread than the PE's."""
        self.nested.clear()
        holder = [self.__dict__.pop("future")]
        thread = threading.Thread(target=holder.clear)
        thread.start()
        thread.join()

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def migrated(self) -> None:
        if not hasattr(self, "future"):
            return
        assert self.nested["same"][0] is self.future
        self.done_on_arrival = self.future.done()

    def was_done(self) -> bool | None:
        return self.done_on_arrival

    def where(self) -> int:
        return weft.my_pe()

    def listen(self) -> None:
        self.future.then(lambda ready: self.called.append(ready.result()))

    def heard(self) -> list[Any]:
        return self.called

    async def wait(self) -> Any:
        value = await self.future
        assert self.future.done() and self.future.result() is value
        return value

    async def wait_for_itself(self) -> bool:
        value = await self.future
        return value[0].result() is value and value[1] == 5

    async def wait_or_not(self, seconds: float) -> Any:
        done, _pending = await weft.wait([self.future], timeout=seconds)
        return done[0].result() if done else "still waiting"

    async def wait_on_device(self) -> tuple[list[float], int]:
        value = await self.future
        assert isinstance(value, weft.DeviceArray)
        return (await value.to_host()).tolist(), weft.my_pe()


async def error_of(awaitable: Any) -> Any:
    try:
        await awaitable
    except weft.Error as error:
        return error
    return None


def others() -> list[int]:
    return sorted({1 % weft.num_pes(), weft.num_pes() - 1})


async def values() -> None:
    hands = weft.Group(Hand)
    samples = [7, "text", {"a": [1, None]}, np.arange(5), np.arange(100_000.0), bytes(70_000), {1, 2}, None]
    for value in samples:
        for when in ("before", "after", "way back", "home again"):
            for setter in range(weft.num_pes()):
                keeper = weft.Singleton(Keeper, pe=0)
                future = await keeper.make.call()
                if when == "before":
                    await hands[setter].set.call(future, value)
                    await weft.quiescence()
                way = [*others(), 0, 1 % weft.num_pes()]
                for i, to_pe in enumerate(way):
                    keeper.go(to_pe)
                    if when == "way back" and i == len(way) - 2:
                        hands[setter].set(future, value)
                if when in ("after", "home again"):
                    if when == "home again":
                        await keeper.go.call(0)
                        await weft.quiescence()
                    hands[setter].set(future, value)
                got = await keeper.wait.call()
                assert np.array_equal(got, value) if isinstance(value, np.ndarray) else got == value, got
                if when == "before" and weft.num_pes() > 1:
                    assert await keeper.was_done.call() is True
                await keeper.collection.destroy()


async def waiting() -> None:
    hands = weft.Group(Hand)
    last = weft.num_pes() - 1
    # Several values, of which some come before the move.
    keeper = weft.Singleton(Keeper, pe=0)
    future = await keeper.make.call(3)
    hands[0].set(future, 1)
    await weft.quiescence()
    await keeper.go.call(last)
    hands[last].set(future, 2)
    hands[0].set(future, 3)
    assert sorted(await keeper.wait.call()) == [1, 2, 3]
    # Errors, before and after, and once more elsewhere.
    for first in (True, False):
        await keeper.go.call(0)
        await weft.quiescence()
        future = await keeper.make.call()
        if not first:
            await keeper.go.call(last)
        hands[last].fail(future, "no value")
        await weft.quiescence()
        await keeper.go.call(last)
        for pe in (last, 0):
            await keeper.go.call(pe)
            error = await error_of(keeper.wait.call())
            assert isinstance(error, weft.RemoteError) and error.type_name == "ValueError", error
            assert "no value" in str(error)
    # Callbacks and timeouts.
    future = await keeper.make.call()
    await keeper.go.call(last)
    await weft.quiescence()
    keeper.listen()
    assert await keeper.wait_or_not.call(0.001) == "still waiting"
    hands[0].set(future, "heard")
    assert await keeper.wait_or_not.call(100) == "heard"
    while await keeper.heard.call() != ["heard"]:
        await weft.yield_now()
    await keeper.collection.destroy()
    # A value that holds its future. The copy of the value holds the copy.
    for first in (True, False):
        keeper = weft.Singleton(Keeper, pe=0)
        future = await keeper.make.call()
        if first:
            keeper.set_to_itself()
        await keeper.go.call(last)
        await weft.quiescence()
        if not first:
            keeper.set_to_itself()
        assert await keeper.wait_for_itself.call()
    # The result of a call, and its error.
    for number in (4, -1):
        keeper = weft.Singleton(Keeper, pe=0)
        hand = weft.Singleton(Hand, pe=last)
        opened = await hand.gate.call()
        await keeper.ask.call(hand, number)
        await keeper.go.call(last)
        await keeper.go.call(0)
        await keeper.go.call(last)
        await weft.quiescence()
        opened.set(None)
        if number == 4:
            assert await keeper.wait.call() == 5
        else:
            error = await error_of(keeper.wait.call())
            assert isinstance(error, weft.RemoteError) and error.type_name == "KeyError", error
    # Two holders; main awaits too.
    future = weft.Future()
    keepers = weft.Array(Keeper, 4, map=first_pe)
    await keepers.keep.call(future)
    for i in range(4):
        keepers[i].go(i % weft.num_pes())
    waits = [keepers[i].wait.call() for i in range(4)]
    await weft.quiescence()
    keepers[3].set("for all")
    assert await weft.gather(future, *waits) == ["for all"] * 5
    # Holders that go: on the PE's thread, and on another one.
    for drop in (True, False):
        keeper = weft.Singleton(Keeper, pe=0)
        future = await keeper.make.call()
        await keeper.go.call(last)
        if drop:
            await keeper.drop_in_thread.call()
        else:
            await keeper.collection.destroy()
        await weft.quiescence()
        future.set(0)
        await weft.quiescence()
    # A value that its home has and that cannot travel.
    if weft.num_pes() > 1:
        future = weft.Future()
        keeper = weft.Singleton(Keeper, pe=0)
        await keeper.keep.call(future)
        await keeper.go.call(last)
        wait = keeper.wait.call()
        await weft.quiescence()
        _core._hand_over(future, threading.Lock())
        error = await error_of(wait)
        assert isinstance(error, weft.RemoteError) and "lock" in str(error), error


def first_pe(index: int) -> int:
    return 0


class Collector(weft.Chare):
    def __init__(self) -> None:
        self.futures: list[weft.Future[int]] = []
        self.sum = 0

    def add(self) -> weft.Future[int]:
        self.futures.append(weft.Future())
        return self.futures[-1]

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    async def take(self) -> int:
        for future in self.futures:
            self.sum += await future
        return self.sum


async def at_random() -> None:
    seed = int(os.environ.get("WEFT_TEST_SEED", random.randrange(1 << 30)))
    print(f"WEFT_TEST_SEED={seed}", flush=True)
    chance = random.Random(seed)
    collectors = await weft.Array(Collector, 5)
    unset: list[list[weft.Future[int]]] = [[] for _ in range(5)]
    expected = [0] * 5
    for step in range(800):
        i = chance.randrange(5)
        what = chance.randrange(5)
        if what == 0:
            unset[i].append(await collectors[i].add.call())
        elif what == 1 and unset[i]:
            unset[i].pop(chance.randrange(len(unset[i]))).set(step)
            expected[i] += step
        elif what == 2:
            await weft.yield_now()
        else:
            collectors[i].go(chance.randrange(weft.num_pes()))
    await weft.quiescence()  # no chare is asked to move while it waits
    for i in range(5):
        for future in unset[i]:
            future.set(1)
            expected[i] += 1
    assert await collectors.take.call() == expected


async def device() -> None:
    kind = sys.argv[2]
    last = weft.num_pes() - 1
    for first in (True, False):
        keeper = weft.Singleton(Keeper, pe=0)
        future = await keeper.make.call()
        array = weft.DeviceArray(1000, "f8", kind)
        await array.copy_from(np.arange(1000.0))
        hand = weft.Singleton(Hand, pe=last)
        if not first:
            await keeper.go.call(last)
            await weft.quiescence()
        await hand.set.call(future, weft.nocopy(array))
        if first:
            await weft.quiescence()
            await keeper.go.call(last)
        got, pe = await keeper.wait_on_device.call()
        assert got == list(range(1000)) and pe == last


async def failing() -> None:
    case = sys.argv[2]
    keeper = weft.Singleton(Keeper, pe=0)
    if case == "unobserved":  # the result of a call, whose holder never looks
        hand = weft.Singleton(Hand, pe=0)
        opened = await hand.gate.call()
        await keeper.ask.call(hand, -1)
        await keeper.go.call(1)
        await weft.quiescence()
        opened.set(None)
        await weft.quiescence()
        await keeper.collection.destroy()
        await weft.sleep(10)
    elif case == "twice":
        future = await keeper.make.call()
        await keeper.go.call(1)
        future.set(1)
        assert await keeper.wait.call() == 1
        del future
        keeper.set(2)
        await weft.sleep(10)
    else:  # a value that is there and does not travel
        await keeper.make.call()
        keeper.set_to_lock()
        await keeper.go.call(1)
        await weft.sleep(10)


async def main() -> None:
    await {
        "values": values,
        "waiting": waiting,
        "random": at_random,
        "device": device,
        "failing": failing,
    }[MODE]()
    print("all checked")


weft.run(main)
