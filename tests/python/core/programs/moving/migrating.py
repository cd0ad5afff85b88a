"""Chares that move to another PE. Prints "all checked".

migrating.py state|refused|landing|traffic|device KIND|failing CLASS
"""

from __future__ import annotations

import os
import random
import sys
from typing import Any

import numpy as np

import weft

MODE = sys.argv[1]


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left: int) -> None:
        self.left = left


# Of this PE: the last object that was asked to move, or whose __init__ has raised.
left_behind: list[weft.Chare] = []


class Private(weft.Chare):
    """Its state is in slots, one of them with a mangled name."""

    __slots__ = ("__hidden", "open")

    def __init__(self) -> None:
        self.__hidden = 3

    def go(self) -> None:
        self.migrate(weft.num_pes() - 1)

    def check(self) -> bool:
        return self.__hidden == 3 and not hasattr(self, "open")


class Empty(weft.Chare):
    def __getstate__(self) -> None:
        return None

    def __setstate__(self, state: object) -> None:
        raise AssertionError("pickle does not call it without a state")

    def go(self) -> None:
        self.migrate(weft.num_pes() - 1)

    def check(self) -> bool:
        return True


class Computed(weft.Chare):
    """Its state is made while it is packed, and nothing else holds it."""

    def __init__(self) -> None:
        self.scale = 3.0

    def __getstate__(self) -> dict[str, Any]:
        return {"field": np.full(100_000, 3.0), "more": np.full(100_000, 3.0)}

    def go(self) -> None:
        self.migrate(weft.num_pes() - 1)

    def check(self) -> bool:
        return weft.num_pes() == 1 or bool((self.field == 3.0).all() and (self.more == 3.0).all())  # type: ignore[attr-defined]


class Unmade(weft.Chare):
    def __init__(self) -> None:
        left_behind[:] = [self]
        raise ValueError("not today")


class Rover(weft.Chare):
    def __init__(self, size: int = 10) -> None:
        self.array = np.arange(size, dtype="f8") + index_number(self.index)
        self.same = [self.array, self.array]
        self.read_only = np.ones(3)
        self.read_only.flags.writeable = False
        self.mixed: dict[str, Any] = {"a": (1, "two", b"three"), "me": self.proxy[self.index], 4: {5}}
        self.slotted = Slotted(7)
        self.kinds = [weft.DeviceArray, np.ndarray]
        self.heard: dict[tuple[int, int], int] = {}
        self.shouts: dict[tuple[int, int], int] = {}
        self.arrivals: list[int] = []

    def migrated(self) -> None:
        self.arrivals.append(weft.my_pe())

    def go(self, to_pe: int) -> None:
        left_behind[:] = [self]
        self.migrate(to_pe)

    async def go_waiting(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def where(self) -> int:
        return weft.my_pe()

    def check(self) -> list[int]:
        number = index_number(self.index)
        assert np.array_equal(self.array, np.arange(self.array.size) + number)
        assert self.array is self.same[0] is self.same[1]
        self.array[0] += 1  # still writable, and one array
        assert self.same[1][0] == number + 1
        self.array[0] -= 1
        assert not self.read_only.flags.writeable
        assert self.mixed["a"] == (1, "two", b"three") and self.mixed[4] == {5}
        assert self.mixed["me"] == self.proxy[self.index]
        assert self.kinds == [weft.DeviceArray, np.ndarray]
        assert self.slotted.left == 7 and not hasattr(self.slotted, "right")
        return self.arrivals

    def set_pinned(self, pinned: bool) -> None:
        self.pinned = pinned
        assert self.pinned is pinned

    def hear(self, source: int, number: int) -> None:
        self.heard[source, number] = self.heard.get((source, number), 0) + 1

    def shout(self, source: int, number: int) -> None:
        self.shouts[source, number] = self.shouts.get((source, number), 0) + 1

    def log(self) -> tuple[int, int]:
        assert set(self.heard.values()) <= {1} and set(self.shouts.values()) <= {1}
        self.check()
        return len(self.heard), len(self.shouts)

    def add_up(self, value: int, total: weft.Future[int]) -> None:
        self.contribute(value, weft.Reducer.sum, total)


def index_number(index: Any) -> int:
    return index if isinstance(index, int) else 100 * index[0] + index[1]


async def state() -> None:
    rovers = await weft.Array(Rover, (2, 3), args=(50_000,))
    path = [pe % weft.num_pes() for pe in (1, 2, 0, 0, 3)]
    expected: list[int] = []
    at = await rovers[0, 1].where.call()
    for to_pe in path:
        await rovers[0, 1].go.call(to_pe)
        if to_pe != at:
            expected.append(to_pe)
        at = to_pe
        assert await rovers[0, 1].where.call() == to_pe
        assert await rovers[0, 1].check.call() == expected
        if left_behind and to_pe != 0:
            expect_gone("has moved to another PE")
        total: weft.Future[int] = weft.Future()
        rovers.add_up(2, total)
        assert await total == 12
    await rovers.check.call()
    await rovers.destroy()
    for chare_class in (Private, Empty, Computed):
        chare = weft.Singleton(chare_class, pe=0)
        await chare.go.call()
        assert await chare.check.call()
    try:
        await weft.Singleton(Unmade, pe=0)
    except weft.Error as error:
        assert "not today" in str(error)
    expect_gone("was not made: its constructor raised")


def expect_gone(sentence: str) -> None:
    try:
        left_behind[0].proxy.destroy()
    except weft.Error as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(sentence)


class Store(weft.Chare):
    """Moves while large arrays of other calls land; it has no coroutine."""

    def __init__(self) -> None:
        self.count = 0

    def put(self, values: Any) -> None:
        self.count += len(values) == 70_000

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    def total(self) -> int:
        return self.count


async def landing() -> None:
    store = weft.Array(Store, 1)[0]
    values = np.zeros(70_000)
    for i in range(100):
        store.put(values)
        store.go(i % weft.num_pes())
        if i % 10 == 0:
            await weft.yield_now()
    await weft.quiescence()
    assert await store.total.call() == 100


async def refused() -> None:
    rovers = await weft.Array(Rover, 2)
    for call, sentence in (
        (rovers[0].go.call(weft.num_pes()), f"there is no PE {weft.num_pes()}"),
        (rovers[0].go.call(-1), "there is no PE -1"),
        (rovers[0].go.call("x"), "whole number"),
        (rovers[0].go_waiting.call(0), "has 1 coroutine that waits"),
    ):
        try:
            await call
        except weft.Error as error:
            assert sentence in str(error), error
        else:
            raise AssertionError(sentence)
    try:
        await weft.Group(Rover)[0].go.call(0)
    except weft.Error as error:
        assert "belongs to a group" in str(error)
    else:
        raise AssertionError("an element of a group has moved")
    await rovers[0].set_pinned.call(True)
    try:
        await rovers[0].go.call(0)
    except weft.Error as error:
        assert "is pinned" in str(error)
    else:
        raise AssertionError("a pinned chare has moved")


class Traffic(weft.Chare):
    async def run(self, rovers: weft.Array, seed: int, steps: int) -> list[int]:
        chance = random.Random(seed + weft.my_pe())
        sent = [0] * (len(rovers) + 1)
        for _ in range(steps):
            i = chance.randrange(len(rovers))
            what = chance.randrange(8)
            if what == 0:
                rovers.shout(weft.my_pe(), sent[-1])
                sent[-1] += 1
            elif what < 3:
                rovers[i].go(chance.randrange(weft.num_pes()))
            elif what == 3 and chance.randrange(8) == 0:
                assert len(await rovers.where.call()) == len(rovers)
            elif what == 4:
                await weft.yield_now()
            else:
                rovers[i].hear(weft.my_pe(), sent[i])
                sent[i] += 1
        return sent


async def traffic() -> None:
    seed = int(os.environ.get("WEFT_TEST_SEED", random.randrange(1 << 30)))
    print(f"WEFT_TEST_SEED={seed}", flush=True)
    for size in (3, 20_000):
        rovers = await weft.Array(Rover, 7, args=(size,))
        sent = await weft.Group(Traffic).run.call(rovers, seed, 600)
        await weft.quiescence()
        shouts = sum(of_pe[-1] for of_pe in sent)
        logs = await rovers.log.call()
        assert logs == [(sum(of_pe[i] for of_pe in sent), shouts) for i in range(7)], logs
        await rovers.destroy()


class DeviceRover(weft.Chare):
    def __init__(self, kind: str, size: int) -> None:
        values = np.arange(size, dtype="f4") + self.index
        self.array = weft.DeviceArray(values.shape, values.dtype, kind)
        self.empty = weft.DeviceArray(0, "i4", kind)
        self.nested = {"array": [self.array]}

    async def fill(self) -> None:
        await self.array.copy_from(np.arange(self.array.shape[0], dtype="f4") + self.index)

    def go(self, to_pe: int) -> None:
        self.migrate(to_pe)

    async def check(self) -> int:
        assert self.nested["array"][0] is self.array
        assert self.empty.shape == (0,)
        values = await self.array.to_host()
        assert np.array_equal(values, np.arange(values.size, dtype="f4") + self.index)
        return weft.my_pe()


async def device() -> None:
    kind = sys.argv[2]
    for size in (5, 100_000, 3_000_000):
        rovers = await weft.Array(DeviceRover, 3, args=(kind, size))
        await rovers.fill.call()
        for step in range(4):
            for i in range(3):
                rovers[i].go((i + step) % weft.num_pes())
            await weft.quiescence()
            assert await rovers.check.call() == [(i + step) % weft.num_pes() for i in range(3)]
        await rovers.destroy()


class Unpicklable(weft.Chare):
    def __init__(self) -> None:
        self.function = lambda: 0

    def go(self) -> None:
        self.migrate(1)


class Raising(weft.Chare):
    def migrated(self) -> None:
        raise ValueError("no place here")

    def go(self) -> None:
        self.migrate(1)


class Custom(weft.Chare):
    def __init__(self) -> None:
        self.kept = 5
        self.cache = object()

    def __getstate__(self) -> int:
        return self.kept

    def __setstate__(self, state: int) -> None:
        self.kept = state
        self.cache = None

    def go(self) -> None:
        self.migrate(weft.num_pes() - 1)

    def check(self) -> object:
        return self.kept, self.cache is None


async def failing() -> None:
    custom = weft.Singleton(Custom, pe=0)
    custom.go()
    await weft.quiescence()
    assert await custom.check.call() == (5, True)
    which = {"unpicklable": Unpicklable, "raising": Raising}[sys.argv[2]]
    weft.Singleton(which, pe=0).go()
    await weft.quiescence()


async def main() -> None:
    await {
        "state": state,
        "refused": refused,
        "landing": landing,
        "traffic": traffic,
        "device": device,
        "failing": failing,
    }[MODE]()
    print("all checked")


weft.run(main)
